// Greedy k-center and nearest rows against plain loops, on sizes that no block divides.
#include "vit/analysis/coreset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/analysis/nearest_rows.h"
#include "vit/outputs.h"

namespace vit::internal {
namespace {

/// Rows of length 1 around a few directions.
Tensor<float> unit_rows(std::size_t rows, std::size_t columns, unsigned seed) {
  test::Rng rng(seed);
  Tensor<float> out(Shape{rows, columns});
  const Tensor<float> directions = rng.tensor(Shape{7, columns});
  for (std::size_t i = 0; i < rows; ++i) {
    float* const row = out.view().row(i);
    for (std::size_t c = 0; c < columns; ++c) row[c] = directions.view().row(i % 7)[c] + 0.3f * rng.normal();
    normalize({row, columns});
  }
  return out;
}

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
  const Tensor<float> rows = unit_rows(503, 19, 3);
  const std::vector<std::size_t> one = choose_coreset(rows, 1, 1);
  REQUIRE(one.size() == 1);
  const std::vector<std::size_t> expected = plain_coreset(rows, one.front(), 60);
  for (const int threads : {1, 2, 3}) CHECK(choose_coreset(rows, 60, threads) == expected);
}

TEST_CASE("coreset: all rows, equal rows, impossible counts") {
  const Tensor<float> rows = unit_rows(20, 5, 4);
  CHECK(choose_coreset(rows, 20, 1).size() == 20);
  Tensor<float> equal(Shape{6, 2});
  for (std::size_t i = 0; i < 6; ++i) equal.data()[2 * i] = 1;
  CHECK(choose_coreset(equal, 4, 1) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK_ERROR(ErrorKind::argument, ("21 of 20"), choose_coreset(rows, 21, 1));
}

TEST_CASE("nearest rows: largest product, first of equal ones, without a range") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    Tensor<float> rows = unit_rows(2'100, 21, 5);
    std::copy_n(rows.view().row(3), 21, rows.view().row(1'700));  // equal to row 3
    const Tensor<float> queries = unit_rows(131, 21, 6);
    const NearestRows set(rows, *table->float32->linear);
    for (const RowRange left_out : {RowRange{}, RowRange{1'000, 1'050}, RowRange{0, 1'030}}) {
      std::vector<NearestRow> found(131), again(131);
      set.find(queries, found, left_out, 1);
      set.find(queries, again, left_out, 3);
      for (std::size_t q = 0; q < 131; ++q) {
        double best = -2;
        for (std::size_t i = 0; i < 2'100; ++i) {
          if (i < left_out.begin || i >= left_out.end)
            best = std::max(best, cosine_similarity({queries.view().row(q), 21}, {rows.view().row(i), 21}));
        }
        CHECK(static_cast<double>(found[q].product) == doctest::Approx(best).epsilon(4e-6));
        CHECK((found[q].row < left_out.begin || found[q].row >= left_out.end));
        CHECK(found[q].row != (left_out.begin == 0 && left_out.end > 3 ? 3 : 1'700));
        CHECK(again[q].row == found[q].row);
        CHECK(again[q].product == found[q].product);
      }
    }
    std::vector<NearestRow> none(131);
    CHECK_ERROR(ErrorKind::argument, ("left out"), set.find(queries, none, {0, 2'100}, 1));
    Tensor<float> damaged = unit_rows(131, 21, 6);
    damaged.data()[0] = std::numeric_limits<float>::quiet_NaN();
    CHECK_ERROR(ErrorKind::argument, ("finite"), set.find(damaged, none, {}, 1));
  }
}

}  // namespace vit::internal
