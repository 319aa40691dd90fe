#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/rng.h"
#include "vit/position/tables.h"

namespace vit::position {

TEST_CASE("position: sinusoidal rows follow their formula in one and two dimensions") {
  const Tensor<double> line = sinusoidal_1d<double>(9, 6);
  const Tensor<float> line_float = sinusoidal_1d<float>(9, 6);
  const Tensor<double> plane = sinusoidal_2d<double>({3, 5}, 12, 100.0);
  const Tensor<double> axis = sinusoidal_1d<double>(5, 6, 100.0);
  for (std::size_t t = 0; t < 9; ++t) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(t) * std::pow(10000.0, -2.0 * static_cast<double>(i) / 6.0);
      CHECK(line.data()[t * 6 + 2 * i] == doctest::Approx(std::sin(angle)).epsilon(1e-14));
      CHECK(line.data()[t * 6 + 2 * i + 1] == doctest::Approx(std::cos(angle)).epsilon(1e-14));
      CHECK(line_float.data()[t * 6 + 2 * i] == static_cast<float>(line.data()[t * 6 + 2 * i]));
    }
  }
  for (std::size_t t = 0; t < 15; ++t) {
    for (std::size_t c = 0; c < 6; ++c) {
      CHECK(plane.data()[t * 12 + c] == axis.data()[t % 5 * 6 + c]);
      CHECK(plane.data()[t * 12 + 6 + c] == axis.data()[t / 5 * 6 + c]);
    }
  }
  CHECK_THROWS_AS(sinusoidal_1d<float>(9, 5), Error);
  CHECK_THROWS_AS(sinusoidal_2d<float>({3, 5}, 6), Error);
  CHECK_THROWS_AS(sinusoidal_1d<double>(9, 6, -1.0), Error);
}

TEST_CASE("position: sinusoidal rows in quarters are those of vit-pytorch") {
  // posemb_sincos_2d(3, 5, 12) in float32, the patch of row 2 and column 3
  const double expected[] = {0.1411200, 0.0299955, 0.0003000, -0.9899925, 0.9995500, 0.9999999,
                             0.9092974, 0.0199987, 0.0002000, -0.4161468, 0.9998000, 1.0000000};
  const Tensor<double> rows = sinusoidal_2d_quarters<double>({3, 5}, 12);
  for (std::size_t c = 0; c < 12; ++c) CHECK(std::abs(rows.data()[13 * 12 + c] - expected[c]) < 1e-6);
  const Tensor<float> other = sinusoidal_2d_quarters<float>({2, 2}, 8, 9.0);
  CHECK(other.data()[3 * 8 + 1] == static_cast<float>(std::sin(1.0 / 9.0)));
  CHECK_THROWS_AS(sinusoidal_2d_quarters<float>({3, 5}, 10), Error);
  CHECK_THROWS_AS(sinusoidal_2d_quarters<float>({3, 5}, 8, 0.0), Error);
}

TEST_CASE("position: relative index clips the distance from query to key") {
  const Tensor<std::size_t> index = relative_index(6, 2);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      const int expected = std::max(-2, std::min(2, j - i)) + 2;
      CHECK(index.data()[i * 6 + j] == static_cast<std::size_t>(expected));
    }
  }
}

TEST_CASE("position: relative attention follows its definition, for any number of threads") {
  test::Rng random(21);
  constexpr std::size_t kImages = 2, kHeads = 3, kTokens = 7, kDim = 5, kRadius = 2;
  const Shape shape{kImages, kHeads, kTokens, kDim};
  const Tensor<double> q = random.tensor<double>(shape), k = random.tensor<double>(shape);
  const Tensor<double> v = random.tensor<double>(shape);
  const Tensor<double> keys = random.tensor<double>(Shape{2 * kRadius + 1, kDim});
  const Tensor<double> values = random.tensor<double>(Shape{2 * kRadius + 1, kDim});
  const RelativeTables<double> tables{keys.view(), values.view()};
  const auto result = relative_attention<double>(q.view(), k.view(), v.view(), tables);
  const auto threaded = relative_attention<double>(q.view(), k.view(), v.view(), tables, {.threads = 3});
  const Tensor<std::size_t> index = relative_index(kTokens, kRadius);
  for (std::size_t bh = 0; bh < kImages * kHeads; ++bh) {
    for (std::size_t i = 0; i < kTokens; ++i) {
      std::vector<double> weight(kTokens);
      double sum = 0.0;
      for (std::size_t j = 0; j < kTokens; ++j) {
        double score = 0.0;
        for (std::size_t c = 0; c < kDim; ++c) {
          const double key =
              k.data()[(bh * kTokens + j) * kDim + c] + keys.data()[index.data()[i * kTokens + j] * kDim + c];
          score += q.data()[(bh * kTokens + i) * kDim + c] * key;
        }
        sum += weight[j] = std::exp(score / std::sqrt(static_cast<double>(kDim)));
      }
      for (std::size_t c = 0; c < kDim; ++c) {
        double expected = 0.0;
        for (std::size_t j = 0; j < kTokens; ++j) {
          expected += weight[j] / sum *
                      (v.data()[(bh * kTokens + j) * kDim + c] +
                       values.data()[index.data()[i * kTokens + j] * kDim + c]);
        }
        const std::size_t at = (bh * kTokens + i) * kDim + c;
        CHECK(std::abs(result.out.data()[at] - expected) <= 1e-14);
        CHECK(result.out.data()[at] == threaded.out.data()[at]);
      }
      for (std::size_t j = 0; j < kTokens; ++j) {
        CHECK(std::abs(result.probabilities.data()[(bh * kTokens + i) * kTokens + j] - weight[j] / sum) <=
              1e-15);
      }
    }
  }
}

TEST_CASE("position: relative attention refuses shapes that do not fit") {
  const Tensor<float> q(Shape{1, 2, 4, 6}), other(Shape{1, 2, 5, 6}), table(Shape{7, 6}), even(Shape{6, 6}),
      narrow(Shape{7, 5});
  const RelativeTables<float> tables{table.view(), table.view()};
  CHECK_NOTHROW(relative_attention<float>(q.view(), q.view(), q.view(), tables));
  CHECK_THROWS_AS(relative_attention<float>(q.view(), other.view(), q.view(), tables), Error);
  const RelativeTables<float> wrong_rows{even.view(), even.view()}, wrong_width{narrow.view(), narrow.view()},
      unequal{table.view(), TensorView<const float>(table.data(), Shape{5, 6})};
  CHECK_THROWS_AS(relative_attention<float>(q.view(), q.view(), q.view(), wrong_rows), Error);
  CHECK_THROWS_AS(relative_attention<float>(q.view(), q.view(), q.view(), wrong_width), Error);
  CHECK_THROWS_AS(relative_attention<float>(q.view(), q.view(), q.view(), unequal), Error);
}

}  // namespace vit::position
