// Mutual nearest rows against plain loops.
#include "vit/analysis/features.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/outputs.h"

namespace vit {
namespace {

Tensor<float> random_rows(std::size_t rows, unsigned seed) {
  Tensor<float> out(Shape{rows, 5});
  test::Rng rng(seed);
  for (float& value : out.flat()) value = rng.normal();
  return out;
}

/// The row of `rows` with the largest cosine, the first of equal ones.
std::size_t nearest(const float* row, TensorView<const float> rows) {
  std::size_t best = 0;
  double largest = -2;
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    const double cosine = cosine_similarity({row, 5}, {rows.row(i), 5});
    if (cosine > largest) {
      largest = cosine;
      best = i;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("nearest: mutual pairs are those of plain loops, for any number of threads") {
  const Tensor<float> a = random_rows(300, 1), b = random_rows(170, 2);
  std::vector<NearestPair> expected;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t j = nearest(a.view().row(i), b);
    if (nearest(b.view().row(j), a) == i) {
      expected.push_back(
          {.first = i, .second = j, .cosine = cosine_similarity({a.view().row(i), 5}, {b.view().row(j), 5})});
    }
  }
  REQUIRE(expected.size() > 20);
  for (const int threads : {1, 2, 3}) {
    const std::vector<NearestPair> found = mutual_nearest(a, b, threads);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].first == expected[i].first);
      CHECK(found[i].second == expected[i].second);
      CHECK(found[i].cosine == doctest::Approx(expected[i].cosine).epsilon(1e-12));
    }
  }
}

TEST_CASE("nearest: of equal rows the first counts, and sets that do not compare are errors") {
  Tensor<float> same(Shape{3, 5});
  std::fill(same.flat().begin(), same.flat().end(), 1.0f);
  const std::vector<NearestPair> found = mutual_nearest(same, same);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == 0);
  CHECK(found[0].second == 0);
  CHECK(found[0].cosine == doctest::Approx(1.0));
  CHECK_ERROR(ErrorKind::argument, ("cannot be compared"), mutual_nearest(same, Tensor<float>(Shape{3, 4})));
}

}  // namespace vit
