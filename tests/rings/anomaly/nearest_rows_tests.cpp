// Nearest rows against plain loops, and the search in groups against all products, bit by bit.
#include "vit/rings/anomaly/nearest_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/unit_rows.h"
#include "vit/analysis/features.h"
#include "vit/kernels/kernels.h"
#include "vit/rings/anomaly/group_search.h"

TEST_SUITE_BEGIN("anomaly");

namespace vit::internal {
namespace {

using test::unit_rows;

const kernels::LinearKernels& default_linear() {
  return *kernels::default_kernels().float32->linear;
}

bool same(std::span<const NearestRow> a, std::span<const NearestRow> b) {
  return std::ranges::equal(a, b, [](const NearestRow& x, const NearestRow& y) {
    return x.row == y.row && x.product == y.product;
  });
}

/// Grouped and plain search, with one thread and three.
void check_same(TensorView<const float> rows, TensorView<const float> queries, RowRange left_out,
                const kernels::LinearKernels& linear) {
  const NearestRows grouped(rows, linear, 0);
  const NearestRows plain(rows, linear, std::numeric_limits<std::size_t>::max());
  std::vector<NearestRow> expected(queries.num_rows()), found(queries.num_rows());
  plain.find(queries, expected, left_out, 1);
  for (const int threads : {1, 3}) {
    grouped.find(queries, found, left_out, threads);
    CHECK(same(found, expected));
  }
}

/// Each row times a length of its own, from 0 to very long.
void scale_rows(Tensor<float>& rows) {
  for (std::size_t i = 0; i < rows.dim(0); ++i) {
    const float length = i % 11 == 0 ? 0.0f : std::pow(10.0f, static_cast<float>(i % 5) - 2.0f);
    for (std::size_t c = 0; c < rows.dim(1); ++c) rows.view().row(i)[c] *= length;
  }
}

}  // namespace

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

TEST_CASE("nearest rows: groups find what all products find, on awkward sizes") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const kernels::LinearKernels& linear = *table->float32->linear;
    const bool is_naive = table->name == std::string_view("reference");
    for (const std::size_t count : {1, 63, 65, is_naive ? 300 : 1'811}) {
      CAPTURE(count);
      const std::size_t columns = count % 2 == 0 ? 193 : 131;
      const Tensor<float> rows = unit_rows(count, columns, 7);
      const Tensor<float> queries = unit_rows(77, columns, 8);
      check_same(rows, queries, {}, linear);
      check_same(rows, rows.view().part(0, std::min<std::size_t>(count, 99)), {}, linear);
      if (count > 1) check_same(rows, rows.view().part(0, 9), {0, count - 1}, linear);
      if (count > 64) check_same(rows, rows.view().part(0, 64), {5, 40}, linear);
    }
  }
}

TEST_CASE("nearest rows: groups of rows that are equal, of any length, or mean nothing") {
  SUBCASE("each row seven times: the first is found") {
    Tensor<float> rows = unit_rows(1'400, 150, 9);
    for (std::size_t i = 200; i < 1'400; ++i) std::copy_n(rows.view().row(i % 200), 150, rows.view().row(i));
    check_same(rows, rows.view().part(1'000, 300), {}, default_linear());
    check_same(rows, rows.view().part(1'000, 300), {0, 350}, default_linear());
  }
  SUBCASE("all rows are one") {
    Tensor<float> rows = unit_rows(500, 150, 9);
    for (std::size_t i = 1; i < 500; ++i) std::copy_n(rows.data(), 150, rows.view().row(i));
    check_same(rows, unit_rows(20, 150, 10), {}, default_linear());
  }
  SUBCASE("no direction holds more than another") {
    check_same(unit_rows(900, 256, 11, 50.0f), unit_rows(40, 256, 12, 50.0f), {}, default_linear());
  }
  SUBCASE("rows and queries of other lengths, and zeros") {
    Tensor<float> rows = unit_rows(1'000, 150, 13), queries = unit_rows(100, 150, 14);
    scale_rows(rows);
    check_same(rows, queries, {}, default_linear());
    scale_rows(queries);
    check_same(rows, queries, {}, default_linear());
  }
  SUBCASE("numbers near the end of float32") {
    Tensor<float> rows = unit_rows(300, 150, 15);
    for (float& x : rows.flat()) x *= 1e37f;
    check_same(rows, unit_rows(40, 150, 16), {}, default_linear());
    rows.data()[7] = std::numeric_limits<float>::quiet_NaN();  // its row has no product
    check_same(rows, unit_rows(40, 150, 16), {}, default_linear());
  }
}

TEST_CASE("nearest rows: most blocks of clustered rows are left out") {
  const Tensor<float> rows = unit_rows(4'000, 150, 17);
  const RowGroups groups(rows, default_linear());
  const PackedRows packed(rows, groups.order(), default_linear());
  std::vector<NearestRow> found(70, {.row = 0, .product = -std::numeric_limits<float>::infinity()});
  // Queries that are rows of the set are as near as can be.
  Arena memory;
  GroupSearch search(groups, packed, rows.view().part(100, 70), found, {}, memory);
  search.run();
  CHECK(search.num_compared() < 70 * 4'000 / RowGroups::kBlock / 8);
  for (std::size_t q = 0; q < 70; ++q) CHECK(found[q].row == 100 + q);
}

TEST_CASE("nearest rows: sketches bound products and distances, groups are balls") {
  Tensor<float> rows = unit_rows(640, 150, 19);
  scale_rows(rows);
  const RowSketch sketch(rows);
  Tensor<float> sketches(Shape{640, RowSketch::kWidth});
  sketch.apply(rows, sketches);
  const auto sum = [](const float* a, const float* b, std::size_t count, const auto& term) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i)
      total += term(static_cast<double>(a[i]), static_cast<double>(b[i]));
    return total;
  };
  const auto product = [](double a, double b) { return a * b; };
  const auto square = [](double a, double b) { return (a - b) * (a - b); };
  std::size_t num_tight = 0;
  for (std::size_t i = 0; i < 640; ++i) {
    for (std::size_t j = i; j < 640; j += 37) {
      const float *const x = rows.view().row(i), *const y = rows.view().row(j);
      const float *const a = sketches.view().row(i), *const b = sketches.view().row(j);
      const double exact = sum(x, y, 150, product), bound = sum(a, b, RowSketch::kWidth, product);
      const double length = std::sqrt(std::max(sum(x, x, 150, product), sum(y, y, 150, product)));
      const double slack = RowSketch::slack(150, length);
      CHECK(exact <= bound + slack);
      CHECK(sum(a, b, RowSketch::kWidth, square) / 2 <= sum(x, y, 150, square) / 2 + slack);
      num_tight += bound - exact < 0.3 * length * length;
    }
  }
  CHECK(num_tight > 4'000);  // of 5,864: a bound that holds for nothing is none
  std::vector<std::uint32_t> order = group_rows(sketches, 64);
  CHECK(order == group_rows(sketches, 64));
  std::ranges::sort(order);
  for (std::size_t i = 0; i < 640; ++i) CHECK(order[i] == i);
}

}  // namespace vit::internal
