// The products of bfloat16 weights of every table: against float32 products of rounded numbers, to the bit
// where inputs stay float32, and against the reference where a table rounds them as well.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/activations.h"
#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/base/dtype.h"
#include "vit/kernels/pack.h"

namespace vit::internal::kernels {
namespace {

struct Sizes {
  std::size_t rows, out_features, in_features;
};

float rounded(float number) {
  return bf16_to_float(float_to_bf16(number));
}

Tensor<float> rounded(const Tensor<float>& numbers) {
  Tensor<float> out(numbers.shape());
  std::ranges::transform(numbers.flat(), out.data(), [](float number) { return rounded(number); });
  return out;
}

/// Random inputs, dense rows, and weights.
struct Case {
  explicit Case(Sizes s, std::uint64_t seed = 1) : sizes(s) {
    test::Rng rng(seed);
    in = rng.tensor({s.rows, s.in_features});
    weight = rng.tensor({s.out_features, s.in_features});
    bias = rng.numbers(s.out_features);
  }
  Sizes sizes;
  Tensor<float> in, weight;
  std::vector<float> bias;
};

std::vector<float> bf16_product(const KernelTable& table, const Tensor<float>& in,
                                const Tensor<float>& weight, const Epilogue& epilogue) {
  return test::linear_product(*table.bfloat16->linear, in, weight, epilogue);
}

std::vector<float> float_product(const KernelTable& table, const Tensor<float>& in,
                                 const Tensor<float>& weight, const Epilogue& epilogue) {
  return test::linear_product(*table.float32->linear, in, weight, epilogue);
}

/// Bound on the error of output (m, n) of numbers as a table takes them.
double bound(const Case& c, std::size_t m, std::size_t n) {
  double sum = std::fabs(c.bias[n]);
  for (std::size_t k = 0; k < c.sizes.in_features; ++k) {
    sum += 1.02 * std::fabs(static_cast<double>(c.in.view().row(m)[k]) *
                            c.weight.view().row(n)[k]);  // rounding may enlarge both
  }
  return test::dot_bound(test::gemm_chain(c.sizes.in_features) + 1, sum);
}

void check_product(const KernelTable& table, Sizes sizes) {
  CAPTURE(std::string(table.name));
  CAPTURE(sizes.rows);
  CAPTURE(sizes.out_features);
  CAPTURE(sizes.in_features);
  const Case c(sizes);
  const Epilogue epilogue{.bias = c.bias.data()};
  const std::vector<float> out = bf16_product(table, c.in, c.weight, epilogue);
  const bool rounds_inputs = table.bfloat16->linear->convert_rows != nullptr;
  if (!rounds_inputs) CHECK(out == float_product(table, c.in, rounded(c.weight), epilogue));
  const Tensor<float> rounded_in = rounded(c.in);
  const std::vector<float> expected =
      bf16_product(find_kernels("reference"), rounds_inputs ? rounded_in : c.in, c.weight, epilogue);
  for (std::size_t m = 0; m < sizes.rows; ++m) {
    for (std::size_t n = 0; n < sizes.out_features + 5; ++n) {
      const std::size_t i = m * (sizes.out_features + 5) + n;
      if (n >= sizes.out_features) {
        REQUIRE(out[i] == test::kUntouched);
      } else {
        REQUIRE(std::fabs(out[i] - expected[i]) <= bound(c, m, n));
      }
    }
  }
}

}  // namespace

TEST_CASE("kernels: bfloat16 products agree with the reference on every remainder of rows, columns and k") {
  for (const KernelTable* table : available_kernels()) {
    for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 25}) {
      for (const std::size_t columns : {1, 7, 8, 9, 15, 16, 17, 31, 33, 70}) {
        for (const std::size_t k : {1, 2, 3, 33}) check_product(*table, {rows, columns, k});
      }
    }
    for (const std::size_t k : {7, 63, 64, 65, 127, 196, 197, 767, 768, 769, 1537, 2730})
      check_product(*table, {7, 18, k});
    for (const std::size_t columns : {196, 197, 2730}) check_product(*table, {3, columns, 65});
    check_product(*table, {196, 48, 100});
    check_product(*table, {197, 48, 101});
    check_product(*table, {241, 33, 300});  // more rows than one block
  }
}

TEST_CASE("kernels: bfloat16 weights are rounded to nearest, round half to even, infinities and NaN kept") {
  std::vector<float> numbers{0.0f,
                             -0.0f,
                             1.0f,
                             1.00390625f,   // half way, even below
                             1.01171875f,   // half way, even above
                             -1.00390626f,  // just beyond half way
                             3.3895314e38f,
                             std::numeric_limits<float>::max(),  // rounds to infinity
                             std::numeric_limits<float>::infinity(),
                             std::bit_cast<float>(0x7F800001u)};  // NaN whose upper half is that of infinity
  test::Rng rng(11);
  for (int exponent = -100; exponent < 100; ++exponent)
    numbers.push_back(std::ldexp(rng.uniform(-2.0f, 2.0f), exponent));
  Tensor<float> weight(Shape{numbers.size(), 1});
  std::ranges::copy(numbers, weight.data());
  Tensor<float> one(Shape{1, 1});
  one.data()[0] = 1.0f;
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    const std::vector<float> out = bf16_product(*table, one, weight, {});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(numbers[i]);
      CHECK(std::isnan(out[i]) == std::isnan(numbers[i]));
      if (!std::isnan(numbers[i])) CHECK(out[i] == rounded(numbers[i]));
    }
  }
}

TEST_CASE("kernels: tables that multiply bfloat16 round their rows as the weights") {
  for (const KernelTable* table : available_kernels()) {
    const LinearKernels& kernels = *table->bfloat16->linear;
    if (kernels.convert_rows == nullptr) continue;
    CAPTURE(std::string(table->name));
    for (const std::size_t columns : {1, 2, 15, 16, 17, 31, 32, 33, 197}) {
      test::Rng rng(columns);
      Tensor<float> in = rng.tensor({3, columns});
      in.data()[columns - 1] = std::numeric_limits<float>::quiet_NaN();
      const Tensor<std::byte> rows = test::converted_rows(kernels, in);
      for (std::size_t m = 0; m < 3; ++m) {
        for (std::size_t k = 0; k < rows.dim(1) / 2; ++k) {
          std::uint16_t bits = 0;
          std::memcpy(&bits, rows.view().row(m) + 2 * k, sizeof(bits));
          CHECK(bits == (k < columns ? float_to_bf16(in.view().row(m)[k]) : 0u));
        }
      }
    }
  }
}

TEST_CASE(
    "kernels: bfloat16 gives a row the same bits whatever it is computed with, and keeps NaN in its row") {
  const Case c({31, 75, 801});
  const std::vector<float> scale = test::Rng(5).numbers(c.sizes.out_features);
  const Epilogue epilogue{.bias = c.bias.data(), .activation = Activation::gelu, .scale = scale.data()};
  const std::size_t stride = c.sizes.out_features + 5;
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    const std::vector<float> whole = bf16_product(*table, c.in, c.weight, epilogue);
    for (const std::size_t rows_at_once : {1, 2, 5, 7, 11, 13}) {
      for (std::size_t row = 0; row < c.sizes.rows; row += rows_at_once) {
        Tensor<float> part(Shape{std::min(rows_at_once, c.sizes.rows - row), c.sizes.in_features});
        std::copy_n(c.in.view().row(row), part.num_elements(), part.data());
        const std::vector<float> out = bf16_product(*table, part, c.weight, epilogue);
        CHECK(std::equal(out.begin(), out.end(), whole.begin() + static_cast<std::ptrdiff_t>(row * stride)));
      }
    }
    Tensor<float> odd = rounded(c.in);
    odd.view().row(2)[800] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> after = bf16_product(*table, odd, c.weight, epilogue);
    const std::vector<float> before = bf16_product(*table, rounded(c.in), c.weight, epilogue);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i / stride == 2 && i % stride < c.sizes.out_features) {
        CHECK(std::isnan(after[i]));
      } else {
        CHECK(after[i] == before[i]);
      }
    }
  }
}

TEST_CASE("kernels: activations after bfloat16 products are off by at most 9e-5 and a rounding") {
  const std::vector<float> x = test::numbers_for_activations();
  const Tensor<float> zeros(Shape{1, 3}), weight(Shape{x.size(), 3});
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const Activation activation : test::kActivations) {
      CAPTURE(std::string(to_string(activation)));
      const Epilogue epilogue{.bias = x.data(), .activation = activation};
      const std::vector<float> out = bf16_product(*table, zeros, weight, epilogue);
      for (std::size_t n = 0; n < x.size(); ++n) {
        CAPTURE(x[n]);
        REQUIRE(test::is_coarse_activation(out[n], x[n], activation));
      }
    }
  }
}

TEST_CASE("kernels: bfloat16 weights take half the memory") {
  const Case c({1, 192, 768});
  for (const KernelTable* table : available_kernels()) {
    if (table == &find_kernels("reference")) continue;  // keeps rounded numbers as float32
    CAPTURE(std::string(table->name));
    CHECK(2 * PackedMatrix(c.weight, *table->bfloat16->linear).bytes() ==
          PackedMatrix(c.weight, *table->float32->linear).bytes());
  }
}

}  // namespace vit::internal::kernels
