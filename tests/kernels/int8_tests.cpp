// The int8 products of every table against the reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/activations.h"
#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/pack.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

struct Sizes {
  std::size_t rows, out_features, in_features;
};

/// Random inputs, dense rows, weights and what an epilogue takes of each column.
struct Case {
  Case(Sizes s, std::uint64_t seed) : sizes(s) {
    test::Rng rng(seed);
    in = rng.numbers(s.rows * s.in_features);
    weight = rng.tensor({s.out_features, s.in_features});
    bias = rng.numbers(s.out_features);
    scale = rng.numbers(s.out_features);
  }
  Sizes sizes;
  std::vector<float> in;
  Tensor<float> weight;
  std::vector<float> bias, scale;
};

/// The step between the integers of a group of weights, an even number of them.
double weight_step(std::span<const float> group, const LinearKernels& kernels) {
  double step = 0.0;
  for (std::size_t k = 0; k < group.size(); k += 2) {
    const double even = group[k], odd = group[k + 1];
    step = std::max({step, std::fabs(even) / 127.0, std::fabs(odd) / 127.0,
                     std::fabs(even + odd) / (test::int8_steps(kernels).pair_largest - 1)});
  }
  return step;
}

/// The reference loops with inputs as wide as those of other kernels, and weights within the same limits.
const LinearKernels& reference_for(const LinearKernels& kernels) {
  const test::Int8Steps steps = test::int8_steps(kernels);
  const LinearKernels& reference = steps.input_largest == 127 ? reference_byte_kernels(steps.pair_largest)
                                                              : *reference_kernels().int8->linear;
  REQUIRE(test::int8_steps(reference) == steps);
  return reference;
}

/// A product of rows that lie `stride` apart.
std::vector<float> product(const LinearKernels& kernels, const std::vector<float>& in, std::size_t stride,
                           const TensorView<const float>& weight, Sizes sizes, const Epilogue& epilogue) {
  const TensorView<const float> rows(in.data(), Shape{sizes.rows, sizes.in_features}, stride);
  return test::linear_product(kernels, rows, weight, epilogue);
}

/// The scales of all rows, as the kernels find them; zeros as of unsigned bytes.
std::vector<InputScale> scales_of(const LinearKernels& kernels, const std::vector<float>& in,
                                  std::size_t stride, Sizes sizes) {
  const Tensor<std::byte> rows = test::converted_rows(
      kernels, TensorView<const float>(in.data(), Shape{sizes.rows, sizes.in_features}, stride));
  std::vector<InputScale> scales;
  for (std::size_t m = 0; m < sizes.rows; ++m) {
    const std::byte* const behind = rows.view().row(m) + rows.dim(1);
    const auto* const begin =
        reinterpret_cast<const InputScale*>(behind - int8_scale_bytes(sizes.in_features));
    scales.insert(scales.end(), begin, begin + int8_groups(sizes.in_features));
  }
  for (InputScale& scale : scales) scale.zero += test::zero_offset(kernels);
  return scales;
}

void check_against_reference(const KernelTable& table, Sizes sizes) {
  CAPTURE(table.name);
  CAPTURE(sizes.rows);
  CAPTURE(sizes.out_features);
  CAPTURE(sizes.in_features);
  test::Rng rng(7);
  const std::size_t stride = sizes.in_features + 3;
  const std::vector<float> in = rng.numbers(sizes.rows * stride);
  const Tensor<float> weight = rng.tensor({sizes.out_features, sizes.in_features});
  const std::vector<float> bias = rng.numbers(sizes.out_features);
  const Epilogue epilogue{.bias = bias.data()};
  const LinearKernels& kernels = *table.int8->linear;
  const LinearKernels& reference = reference_for(kernels);
  const std::vector<float> out = product(kernels, in, stride, weight, sizes, epilogue);
  const std::vector<float> expected = product(reference, in, stride, weight, sizes, epilogue);
  CHECK(scales_of(kernels, in, stride, sizes) == scales_of(reference, in, stride, sizes));
  const std::size_t out_stride = sizes.out_features + 5;
  for (std::size_t m = 0; m < sizes.rows; ++m) {
    double row_sum = 0.0;  // of |x|, which bounds the sums of the groups with |w| <= 1.01
    for (std::size_t k = 0; k < sizes.in_features; ++k) row_sum += std::fabs(in[m * stride + k]) + 0.01;
    for (std::size_t n = 0; n < out_stride; ++n) {
      const std::size_t i = m * out_stride + n;
      if (n >= sizes.out_features) {
        REQUIRE(out[i] == test::kUntouched);
      } else {
        const double weights = 4.0;  // larger than any weight of the generator
        REQUIRE(std::fabs(out[i] - expected[i]) <=
                test::dot_bound(int8_groups(sizes.in_features) + 3, weights * row_sum + std::fabs(bias[n])));
      }
    }
  }
}

struct Outliers {
  Sizes sizes;
  std::vector<std::uint32_t> columns;
};

/// in W^T with the products of some columns in float32.
Tensor<float> outlier_product(const LinearKernels& kernels, const Tensor<float>& in,
                              const Tensor<float>& weight, std::span<const std::uint32_t> outliers) {
  REQUIRE(kernels.has_outliers);
  const std::size_t outputs = weight.dim(0), panel = kernels.panel_columns;
  const std::size_t stride = (outputs + panel - 1) / panel * panel;
  Tensor<float> rest(weight.shape()), columns(Shape{outliers.size(), stride});
  std::ranges::copy(weight.flat(), rest.data());
  for (std::size_t n = 0; n < outputs; ++n) {
    for (std::size_t i = 0; i < outliers.size(); ++i)
      columns.view().row(i)[n] = std::exchange(rest.view().row(n)[outliers[i]], 0.0f);
  }
  const OutlierColumns these{outliers.data(), outliers.size()};
  Tensor<std::byte> rows(Shape{in.dim(0), kernels.row_bytes(in.dim(1))});
  kernels.convert_rows({.in = in.data(),
                        .in_stride = in.dim(1),
                        .rows = in.dim(0),
                        .in_features = in.dim(1),
                        .out = rows.data(),
                        .outliers = these});
  const PackedMatrix packed(rest, kernels);
  Tensor<float> out(Shape{in.dim(0), outputs});
  GemmArgs args = test::product_args(packed, in.view(), rows);
  args.out = out.data();
  args.out_stride = outputs;
  args.outliers = {these, in.data(), in.dim(1), columns.data(), stride};
  kernels.gemm(args);
  return out;
}

}  // namespace

TEST_CASE("kernels: int8 products agree with the reference on every remainder of rows, columns and k") {
  for (const KernelTable* table : available_kernels()) {
    for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25}) {
      for (const std::size_t columns : {1, 7, 8, 9, 16, 17, 33, 70}) {
        for (const std::size_t k : {1, 2, 3, 5, 33}) check_against_reference(*table, {rows, columns, k});
      }
    }
    for (const std::size_t k : {127, 128, 191, 192, 193, 195, 383, 384, 385, 768, 2730})
      check_against_reference(*table, {7, 18, k});
    check_against_reference(*table, {3, 5, 17 * kInt8Group + 1});  // more groups than lanes
    check_against_reference(*table, {3, 2730, 65});
    check_against_reference(*table, {197, 48, 100});
    check_against_reference(*table, {241, 33, 300});  // more rows than one block
  }
}

TEST_CASE("kernels: int8 adds outlier columns in float32, and their inputs take no steps from the others") {
  test::Rng rng(11);
  for (const Outliers& c : std::initializer_list<Outliers>{{{1, 1, 1}, {0}},
                                                           {{13, 18, 5}, {4}},
                                                           {{25, 33, 192}, {0, 191}},
                                                           {{7, 70, 385}, {5, 191, 192, 384}},
                                                           {{241, 17, 195}, {100, 193}}}) {
    const Sizes s = c.sizes;
    CAPTURE(s.in_features);
    Tensor<float> in = rng.tensor({s.rows, s.in_features});
    const Tensor<float> weight = rng.tensor({s.out_features, s.in_features});
    for (std::size_t m = 0; m < s.rows; ++m) {
      for (const std::uint32_t k : c.columns) in.view().row(m)[k] *= 1000.0f;
    }
    for (const KernelTable* table : available_kernels()) {
      CAPTURE(table->name);
      const Tensor<float> out = outlier_product(*table->int8->linear, in, weight, c.columns);
      const Tensor<float> reference =
          outlier_product(reference_for(*table->int8->linear), in, weight, c.columns);
      for (std::size_t m = 0; m < s.rows; ++m) {
        for (std::size_t n = 0; n < s.out_features; ++n) {
          double exact = 0.0, sum = 0.0;
          for (std::size_t k = 0; k < s.in_features; ++k) {
            const double x = in.view().row(m)[k];
            exact += x * weight.view().row(n)[k];
            sum += std::fabs(x) + 0.01;
          }
          const float found = out.view().row(m)[n];
          REQUIRE(std::fabs(found - reference.view().row(m)[n]) <=
                  test::dot_bound(int8_groups(s.in_features) + c.columns.size() + 3, sum));
          // Half a step of an input for every weight, and of a weight for every input: of 2 / 254, and of a
          // pair.
          const double rounding = (1.0 / 254 + 1.0 / 126) * static_cast<double>(s.in_features);
          REQUIRE(std::fabs(found - exact) <= rounding + test::dot_bound(s.in_features, sum));
        }
      }
    }
  }
}

TEST_CASE("kernels: int8 inputs are off by at most half a step of their group, and 0 is 0") {
  const Sizes sizes{5, 200, 200};
  Tensor<float> identity(Shape{sizes.out_features, sizes.in_features});
  for (std::size_t k = 0; k < sizes.in_features; ++k) identity.data()[k * sizes.in_features + k] = 1.0f;
  const auto check = [&](const LinearKernels& kernels, const std::vector<float>& in) {
    CAPTURE(std::string(kernels.description));
    const std::vector<float> out = product(kernels, in, sizes.in_features, identity, sizes, {});
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t m = i / sizes.in_features, k = i % sizes.in_features;
      const std::size_t begin = k / kInt8Group * kInt8Group;
      const std::size_t end = std::min(begin + kInt8Group, sizes.in_features);
      const std::span<const float> group(&in[m * sizes.in_features + begin], end - begin);
      const double lowest = std::min(0.0f, std::ranges::min(group));
      const double highest = std::max(0.0f, std::ranges::max(group));
      const double largest = std::max(-lowest, highest);
      const int steps = test::int8_steps(kernels).input_largest;
      const double step = steps == 127 ? (highest - lowest) / 254 : largest / steps;
      const double error = std::fabs(out[m * (sizes.out_features + 5) + k] - in[i]);
      REQUIRE(error <= (in[i] == 0.0f ? 0.0 : 0.5 * step + test::dot_bound(5, largest)));
    }
  };
  struct Bounds {
    float low, high;
  };
  for (const Bounds& bounds : {Bounds{-1, 1}, {0, 1}, {-0.2f, 3}, {-5, -4}, {1e-20f, 1e20f}}) {
    CAPTURE(bounds.low);
    test::Rng rng(9);
    std::vector<float> in = rng.numbers(sizes.rows * sizes.in_features, bounds.low, bounds.high);
    in[7] = in[150] = 0.0f;
    for (const KernelTable* table : available_kernels()) check(*table->int8->linear, in);
    check(reference_byte_kernels(128), in);
  }
}

TEST_CASE(
    "kernels: weights are off by at most half a step of their group, neighbors no larger than allowed") {
  const Sizes sizes{200, 3, 200};
  test::Rng rng(11);
  Tensor<float> weight = rng.tensor({sizes.out_features, sizes.in_features});
  // One row where opposite neighbors are large, one where equal ones are.
  for (std::size_t k = 0; k < sizes.in_features; ++k) {
    weight.data()[k] = k % 2 == 0 ? 0.99f : -0.99f;
    weight.data()[sizes.in_features + k] = k % 4 < 2 ? 0.99f : -0.99f;
  }
  std::vector<float> identity(sizes.rows * sizes.in_features);
  for (std::size_t k = 0; k < sizes.in_features; ++k) identity[k * sizes.in_features + k] = 1.0f;
  const auto check = [&](const LinearKernels& kernels) {
    CAPTURE(std::string(kernels.description));
    const std::vector<float> out = product(kernels, identity, sizes.in_features, weight, sizes, {});
    for (std::size_t n = 0; n < sizes.out_features; ++n) {
      for (std::size_t begin = 0; begin < sizes.in_features; begin += kInt8Group) {
        const std::size_t end = std::min(begin + kInt8Group, sizes.in_features);
        const float* const row = weight.data() + n * sizes.in_features;
        const double step = weight_step({row + begin, end - begin}, kernels);
        for (std::size_t k = begin; k < end; ++k) {
          const double error = std::fabs(out[k * (sizes.out_features + 5) + n] - row[k]);
          REQUIRE(error <= 0.5 * step + test::dot_bound(6, 1.0));
        }
      }
    }
  };
  for (const KernelTable* table : available_kernels()) {
    check(*table->int8->linear);
    check(reference_for(*table->int8->linear));
  }
}

TEST_CASE("kernels: the largest integers do not overflow") {
  const Sizes sizes{4, 16, 512};
  std::vector<float> in(sizes.rows * sizes.in_features);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i / sizes.in_features % 2 == 0 ? 127.0f : -127.0f;
  // Neighbors as large as can be, of one sign and of two. The last two pairs lie between two integers
  // where sums of neighbors are limited, and are rounded to the largest pair that there is.
  constexpr std::array<std::array<float, 2>, 8> kPairs{{{127, -127},
                                                        {-127, 127},
                                                        {127, 0},
                                                        {0, -127},
                                                        {64, 63},
                                                        {-63, -64},
                                                        {63.5f, 63.5f},
                                                        {-63.5f, -63.5f}}};
  Tensor<float> weight(Shape{sizes.out_features, sizes.in_features});
  for (std::size_t i = 0; i < weight.num_elements(); ++i) {
    weight.data()[i] = kPairs[i / sizes.in_features % kPairs.size()][i % 2];
  }
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const std::vector<float> out = product(*table->int8->linear, in, sizes.in_features, weight, sizes, {});
    for (std::size_t m = 0; m < sizes.rows; ++m) {
      for (std::size_t n = 0; n < sizes.out_features; ++n) {
        const auto& [even, odd] = kPairs[n % kPairs.size()];
        const double expected = (m % 2 == 0 ? 127.0 : -127.0) * 256.0 * (double{even} + odd);
        const double half_step = 0.5 * weight_step(kPairs[n % kPairs.size()], *table->int8->linear);
        const double error = std::fabs(out[m * (sizes.out_features + 5) + n] - expected);
        CHECK(error <= 127.0 * 512.0 * (half_step + test::dot_bound(7, 127.0)));
      }
    }
  }
}

TEST_CASE(
    "kernels: int8 rows of zeros give the bias, rows that are not finite give NaN, others do not notice") {
  const Case c({4, 9, kInt8Group + 2}, /*seed=*/3);
  const Sizes& sizes = c.sizes;
  const Epilogue epilogue{.bias = c.bias.data()};
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const std::vector<float> before =
        product(*table->int8->linear, c.in, sizes.in_features, c.weight, sizes, epilogue);
    std::vector<float> odd = c.in;
    for (std::size_t k = 0; k < sizes.in_features; ++k) odd[k] = 0.0f;
    odd[1 * sizes.in_features + 5] = std::numeric_limits<float>::quiet_NaN();
    odd[3 * sizes.in_features - 1] = std::numeric_limits<float>::infinity();
    const std::vector<float> after =
        product(*table->int8->linear, odd, sizes.in_features, c.weight, sizes, epilogue);
    for (std::size_t n = 0; n < sizes.out_features; ++n) {
      const std::size_t stride = sizes.out_features + 5;
      CHECK(after[n] == c.bias[n]);
      CHECK(std::isnan(after[stride + n]));
      CHECK(std::isnan(after[2 * stride + n]));
      CHECK(after[3 * stride + n] == before[3 * stride + n]);
    }
  }
}

TEST_CASE("kernels: int8 gives a row the same bits in every company, and every epilogue") {
  const Case c({31, 75, 300}, /*seed=*/5);
  const Sizes& sizes = c.sizes;
  const Epilogue epilogue{.bias = c.bias.data(), .activation = Activation::gelu, .scale = c.scale.data()};
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const std::vector<float> whole =
        product(*table->int8->linear, c.in, sizes.in_features, c.weight, sizes, epilogue);
    for (const std::size_t rows_at_once : {1, 2, 5, 7, 11}) {
      for (std::size_t row = 0; row < sizes.rows; row += rows_at_once) {
        const Sizes part{std::min(rows_at_once, sizes.rows - row), sizes.out_features, sizes.in_features};
        const std::vector<float> rows(c.in.begin() + static_cast<std::ptrdiff_t>(row * sizes.in_features),
                                      c.in.end());
        const std::vector<float> out =
            product(*table->int8->linear, rows, sizes.in_features, c.weight, part, epilogue);
        CHECK(std::equal(out.begin(), out.end(),
                         whole.begin() + static_cast<std::ptrdiff_t>(row * (sizes.out_features + 5))));
      }
    }
  }
}

TEST_CASE("kernels: int8 products without activation end in every last step with only its own rounding") {
  const Case c({31, 75, 300}, /*seed=*/9);
  const Sizes& sizes = c.sizes;
  const std::size_t stride = sizes.out_features + 5;
  const std::vector<float> other = test::Rng(10).numbers(sizes.rows * stride);
  for (const KernelTable* table : available_kernels()) {
    if (table == &find_kernels("reference")) continue;  // rounds once, after the last step
    CAPTURE(table->name);
    const auto run = [&](const Epilogue& epilogue) {
      return product(*table->int8->linear, c.in, sizes.in_features, c.weight, sizes, epilogue);
    };
    const std::vector<float> plain = run({.bias = c.bias.data()});
    const std::vector<float> multiplied =
        run({.bias = c.bias.data(), .multiplier = other.data(), .multiplier_stride = stride});
    const std::vector<float> scaled = run({.bias = c.bias.data(), .scale = c.scale.data()});
    const std::vector<float> added =
        run({.bias = c.bias.data(), .residual = other.data(), .residual_stride = stride});
    const std::vector<float> scaled_and_added = run({.bias = c.bias.data(),
                                                     .scale = c.scale.data(),
                                                     .residual = other.data(),
                                                     .residual_stride = stride});
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const std::size_t n = i % stride;
      if (n >= sizes.out_features) continue;
      REQUIRE(multiplied[i] == plain[i] * other[i]);
      REQUIRE(scaled[i] == plain[i] * c.scale[n]);
      REQUIRE(added[i] == plain[i] + other[i]);
      const float rounded_twice = scaled[i] + other[i];  // where there is no fused multiply-add
      REQUIRE((scaled_and_added[i] == std::fma(plain[i], c.scale[n], other[i]) ||
               scaled_and_added[i] == rounded_twice));
    }
  }
}

TEST_CASE("kernels: activations after int8 products are off by at most 9e-5 and a rounding") {
  const std::vector<float> x = test::numbers_for_activations();
  const Sizes sizes{1, x.size(), 3};
  const std::vector<float> zeros(sizes.in_features);
  const Tensor<float> weight(Shape{sizes.out_features, sizes.in_features});
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    for (const Activation activation : test::kActivations) {
      CAPTURE(std::string(to_string(activation)));
      const Epilogue epilogue{.bias = x.data(), .activation = activation};
      const std::vector<float> out =
          product(*table->int8->linear, zeros, sizes.in_features, weight, sizes, epilogue);
      for (std::size_t n = 0; n < x.size(); ++n) {
        CAPTURE(x[n]);
        REQUIRE(test::is_coarse_activation(out[n], x[n], activation));
      }
    }
  }
}

TEST_CASE("kernels: a weight that is not finite is not quantized") {
  Tensor<float> weight(Shape{3, 4});
  weight.data()[5] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(PackedMatrix(weight, *default_kernels().int8->linear), doctest::Contains("finite"),
                       Error);
}

}  // namespace vit::internal::kernels
