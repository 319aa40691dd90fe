// The matrix instructions of Arm against their definition, bit by bit. Under QEMU this tests its arithmetic
// too.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "vit/base/dtype.h"
#include "vit/kernels/self_check.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

/// Null if this machine does not support it.
const KernelTable* find_table(std::string_view name) {
  for (const KernelTable* table : available_kernels()) {
    if (table->name == name) return table;
  }
  return nullptr;
}

/// a + b rounded to odd: cut off, and the last bit set if anything was. Results are normal numbers or 0.
float add_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double error = (a - (sum - part)) + (b - part);  // of the sum in double precision, exact
  float cut = static_cast<float>(sum);
  if (std::fabs(static_cast<double>(cut)) > std::fabs(sum)) cut = std::nextafter(cut, 0.0f);
  if (static_cast<double>(cut) == sum && error == 0.0) return cut;
  if (static_cast<double>(cut) == sum && std::signbit(error) != std::signbit(sum))
    cut = std::nextafter(cut, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(cut) | 1u);
}

/// The result of BFMMLA for a row and a column of numbers of bfloat16: sums of at most 768, which are added
/// up.
float product_to_odd(const float* row, const float* column, std::size_t in_features) {
  float total = 0.0f;
  for (std::size_t begin = 0; begin < in_features; begin += 768) {
    float sum = 0.0f;
    for (std::size_t k = begin; k < std::min(begin + 768, in_features); k += 2) {
      const double first = static_cast<double>(row[k]) * static_cast<double>(column[k]);
      const double second =
          k + 1 < in_features ? static_cast<double>(row[k + 1]) * static_cast<double>(column[k + 1]) : 0.0;
      sum = add_to_odd(static_cast<double>(sum), static_cast<double>(add_to_odd(first, second)));
    }
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

/// Numbers of bfloat16 of sizes from 2^-20 to 2^20.
Tensor<float> random_bf16(test::Rng& rng, Shape shape) {
  Tensor<float> numbers = rng.tensor(shape);
  for (float& x : numbers.flat())
    x = bf16_to_float(float_to_bf16(std::ldexp(x, static_cast<int>(rng.next() % 41) - 20)));
  return numbers;
}

constexpr std::array<std::size_t, 3> kSizes[] = {{1, 1, 1},    {1, 2, 4},      {2, 1, 5},
                                                 {5, 9, 31},   {6, 16, 64},    {7, 17, 65},
                                                 {13, 8, 770}, {12, 24, 1537}, {109, 33, 40}};

}  // namespace

TEST_CASE("neon: sums of BFMMLA are rounded to odd, in the order of its definition") {
  const KernelTable* const table = find_table("neon_i8mm");
  if (table == nullptr) return;
  test::Rng rng(17);
  for (const std::array<std::size_t, 3>& size : kSizes) {
    const std::size_t rows = size[0], columns = size[1], k = size[2];  // clang 14 captures no bindings
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(k);
    const Tensor<float> in = random_bf16(rng, {rows, k}), weight = random_bf16(rng, {columns, k});
    const std::vector<float> out = test::linear_product(*table->bfloat16->linear, in, weight);
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t n = 0; n < columns; ++n)
        REQUIRE(out[m * (columns + test::kGap) + n] ==
                product_to_odd(in.view().row(m), weight.view().row(n), k));
    }
  }
}

TEST_CASE("neon: a sum that nearest rounding would lose is rounded to odd") {
  const KernelTable* const table = find_table("neon_i8mm");
  if (table == nullptr) return;
  Tensor<float> in(Shape{1, 6}), weight(Shape{1, 6});
  in.data()[0] = weight.data()[0] = 0x1p12f;
  in.data()[4] = weight.data()[4] = 1.0f;
  CHECK(test::linear_product(*table->bfloat16->linear, in, weight).front() == 0x1p24f + 2.0f);
}

TEST_CASE("neon: bytes have the same bits by SDOT and by USMMLA, and products pass the self-check") {
  const KernelTable *const dot = find_table("neon_dot"), *const matrices = find_table("neon_i8mm");
  if (dot == nullptr || matrices == nullptr) return;
  CHECK(products_are_right(*matrices->bfloat16->linear, *matrices->int8->linear));
  CHECK(products_are_right(*matrices->bfloat16->linear, *dot->int8->linear));
  test::Rng rng(3);
  for (const auto& [rows, columns, k] : kSizes) {
    const Tensor<float> in = rng.tensor({rows, k}), weight = rng.tensor({columns, k});
    CHECK(test::linear_product(*matrices->int8->linear, in, weight) ==
          test::linear_product(*dot->int8->linear, in, weight));
  }
}

}  // namespace vit::internal::kernels
