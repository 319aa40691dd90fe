// Greedy k-center against plain loops.
#include "vit/rings/anomaly/coreset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/unit_rows.h"

TEST_SUITE_BEGIN("anomaly");

namespace vit::internal {
namespace {

double distance(TensorView<const float> rows, std::size_t a, std::size_t b) {
  double sum = 0;
  for (std::size_t c = 0; c < rows.num_columns(); ++c)
    sum += std::pow(static_cast<double>(rows.row(a)[c]) - static_cast<double>(rows.row(b)[c]), 2);
  return std::sqrt(sum);
}

/// The farthest row again and again, every row compared with every center.
std::vector<std::size_t> plain_coreset(TensorView<const float> rows, std::size_t first, std::size_t count) {
  std::vector<std::size_t> chosen{first};
  while (chosen.size() < count) {
    std::size_t best = 0;
    double largest = -1;
    for (std::size_t i = 0; i < rows.num_rows(); ++i) {
      double nearest = std::numeric_limits<double>::infinity();
      for (const std::size_t c : chosen) nearest = std::min(nearest, distance(rows, i, c));
      if (nearest > largest) best = i, largest = nearest;
    }
    chosen.push_back(best);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace

TEST_CASE("coreset: the rows of plain greedy k-center, for any number of threads") {
  const Tensor<float> rows = test::unit_rows(503, 19, 3);
  const std::vector<std::size_t> one = choose_coreset(rows, 1, 1);
  REQUIRE(one.size() == 1);
  const std::vector<std::size_t> expected = plain_coreset(rows, one.front(), 60);
  for (const int threads : {1, 2, 3}) CHECK(choose_coreset(rows, 60, threads) == expected);
}

TEST_CASE("coreset: all rows, equal rows, impossible counts") {
  const Tensor<float> rows = test::unit_rows(20, 5, 4);
  CHECK(choose_coreset(rows, 20, 1).size() == 20);
  Tensor<float> equal(Shape{6, 2});
  for (std::size_t i = 0; i < 6; ++i) equal.data()[2 * i] = 1;
  CHECK(choose_coreset(equal, 4, 1) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK_ERROR(ErrorKind::argument, ("21 of 20"), choose_coreset(rows, 21, 1));
}

}  // namespace vit::internal
