#include "vit/eigen.h"

#include <doctest/doctest.h>

using namespace vit;

TEST_CASE("eigen: tensors become matrices without a copy") {
  Tensor<float> tensor(Shape{2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i) tensor.flat()[i] = static_cast<float>(i);
  auto matrix = view_as_eigen(tensor);
  REQUIRE(matrix.rows() == 6);
  REQUIRE(matrix.cols() == 4);
  CHECK(matrix(5, 3) == 23.0f);
  matrix(1, 2) = -1.0f;
  CHECK(tensor.flat()[6] == -1.0f);

  const Tensor<float>& constant = tensor;
  CHECK(view_as_eigen(constant).row(0).sum() == 6.0f);
  const Tensor<float> vector(Shape{5});
  CHECK(view_as_eigen(vector).rows() == 1);
  CHECK(view_as_eigen(vector).cols() == 5);
  CHECK_THROWS_AS(view_as_eigen(TensorView<float>()), Error);
}

TEST_CASE("eigen: the stride between rows is kept, both ways") {
  Tensor<float> wide(Shape{3, 8});
  for (std::size_t i = 0; i < 24; ++i) wide.flat()[i] = static_cast<float>(i);
  const TensorView<float> part(wide.data() + 2, Shape{3, 4}, 8);
  CHECK(view_as_eigen(part)(2, 0) == 18.0f);

  EigenMatrix<float> matrix = EigenMatrix<float>::Random(3, 7);
  const TensorView<float> view = view_as_tensor(matrix);
  CHECK(view.shape() == Shape{3, 7});
  CHECK(view.row(2)[6] == matrix(2, 6));
  view.row(1)[1] = 4.0f;
  CHECK(matrix(1, 1) == 4.0f);
  CHECK(view_as_eigen(view) == matrix);
  const EigenMatrix<float>& constant = matrix;
  CHECK(view_as_tensor(constant).row(0)[0] == matrix(0, 0));
}
