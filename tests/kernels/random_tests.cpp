// Random shapes, strides, alignments and numbers - tiny, huge, denormal, NaN, infinite - for every table,
// against definitions in double precision. VIT_KERNEL_ROUNDS=N runs N rounds of each case instead of a few,
// VIT_KERNEL_SEED=N others. Rows and outputs end where their memory ends, so that AddressSanitizer sees what
// is read or written beyond.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/base/dtype.h"
#include "vit/image/resample_axis.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"

namespace vit::internal::kernels {
namespace {

constexpr double kFloatMax = std::numeric_limits<float>::max();

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Calls round(rng) for each seed; a message names the seed of what fails.
template <typename Round>
void run_rounds(std::uint64_t few, const Round& round) {
  const std::uint64_t first = environment_number("VIT_KERNEL_SEED", 1);
  for (std::uint64_t seed = first; seed < first + environment_number("VIT_KERNEL_ROUNDS", few); ++seed) {
    CAPTURE(seed);
    test::Rng rng(seed * 0x9E3779B97F4A7C15u);
    round(rng);
  }
}

std::size_t below(test::Rng& rng, std::size_t bound) {
  return rng.next() % bound;
}

/// From 1 to `largest`, small ones as often as large ones.
std::size_t size_up_to(test::Rng& rng, std::size_t largest) {
  const double exponent = rng.uniform(0.0, std::log2(static_cast<double>(largest) + 0.99));
  return static_cast<std::size_t>(std::exp2(exponent));
}

enum class Numbers { ordinary, spread, denormal, huge, special };

Numbers any_numbers(test::Rng& rng) {
  return static_cast<Numbers>(below(rng, 5));
}

float number(test::Rng& rng, Numbers kind) {
  const float x = rng.uniform(-1.0f, 1.0f);
  switch (kind) {
    case Numbers::ordinary: return x;
    case Numbers::spread: return std::ldexp(x, static_cast<int>(below(rng, 80)) - 50);
    case Numbers::denormal: return x * 0x1p-127f;
    case Numbers::huge: return x * 0x1p+126f;
    case Numbers::special: break;
  }
  switch (below(rng, 200)) {
    case 0: return std::numeric_limits<float>::quiet_NaN();
    case 1: return std::numeric_limits<float>::infinity();
    case 2: return -std::numeric_limits<float>::infinity();
    case 3: return std::numeric_limits<float>::max();
    case 4: return -0.0f;
    default: return x;
  }
}

/// A matrix whose rows lie `stride` apart, the first anywhere and the last at the end of the memory.
struct Matrix {
  Matrix(test::Rng& rng, std::size_t num_rows, std::size_t num_columns, Numbers kind)
      : rows(num_rows),
        columns(num_columns),
        stride(num_columns + below(rng, 9)),
        offset(below(rng, 17)),
        numbers(offset + (num_rows - 1) * stride + num_columns) {
    for (float& x : numbers) x = number(rng, kind);
  }
  const float* row(std::size_t index) const { return numbers.data() + offset + index * stride; }
  float* row(std::size_t index) { return numbers.data() + offset + index * stride; }
  TensorView<const float> view() const { return {row(0), Shape{rows, columns}, stride}; }

  std::size_t rows, columns, stride, offset;
  std::vector<float> numbers;
};

/// Whether what is no part of the rows of `after` is as before.
bool keeps_gaps(const Matrix& before, const Matrix& after) {
  for (std::size_t i = 0; i < before.numbers.size(); ++i) {
    const bool is_inside = i >= before.offset && (i - before.offset) % before.stride < before.columns;
    if (!is_inside && std::memcmp(&before.numbers[i], &after.numbers[i], sizeof(float)) != 0) return false;
  }
  return true;
}

/// Compares a sum of floats with the exact one. Where terms are infinite or NaN the result must be so, too;
/// where finite ones could overflow on the way it may be anything.
void check_sum(float computed, double exact, double finite_sum_abs, double bound) {
  if (finite_sum_abs >= kFloatMax / 4) return;
  if (std::isnan(exact)) {
    REQUIRE(std::isnan(computed));
  } else if (std::isinf(exact)) {
    REQUIRE(static_cast<double>(computed) == exact);
  } else {
    REQUIRE(std::fabs(static_cast<double>(computed) - exact) <= bound);
  }
}

void check_product(test::Rng& rng) {
  const std::size_t rows = size_up_to(rng, 40), out_features = size_up_to(rng, 100),
                    in_features = size_up_to(rng, 1600);
  const Numbers kind = any_numbers(rng);
  // Products of two huge or two denormal numbers would all overflow or vanish.
  const Numbers weight_kind =
      kind == Numbers::huge || kind == Numbers::denormal ? Numbers::ordinary : any_numbers(rng);
  const Matrix in(rng, rows, in_features, kind);
  const Matrix weight(rng, out_features, in_features,
                      weight_kind == Numbers::huge ? Numbers::spread : weight_kind);
  const Matrix bias(rng, 1, out_features, Numbers::ordinary);
  const Matrix before(rng, rows, out_features, Numbers::ordinary);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const PackedMatrix packed(weight.view(), *table->float32->linear);
    Matrix out = before;
    packed.kernels().gemm({.in = reinterpret_cast<const std::byte*>(in.row(0)),
                           .in_step = in.stride * sizeof(float),
                           .rows = rows,
                           .packed = packed.data(),
                           .in_features = in_features,
                           .column_end = out_features,
                           .out = out.row(0),
                           .out_stride = out.stride,
                           .epilogue = {.bias = bias.row(0)}});
    REQUIRE(keeps_gaps(before, out));
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t n = 0; n < out_features; ++n) {
        double exact = bias.row(0)[n], finite = std::fabs(exact);
        for (std::size_t k = 0; k < in_features; ++k) {
          const double term = static_cast<double>(in.row(m)[k]) * static_cast<double>(weight.row(n)[k]);
          exact += term;
          if (std::isfinite(term)) finite += std::fabs(term);
        }
        check_sum(out.row(m)[n], exact, finite, test::dot_bound(test::gemm_chain(in_features) + 1, finite));
      }
    }
  }
}

void check_narrow_products(test::Rng& rng) {
  const std::size_t rows = size_up_to(rng, 30), out_features = size_up_to(rng, 80),
                    in_features = size_up_to(rng, 900);
  const Matrix in(rng, rows, in_features, below(rng, 2) == 0 ? Numbers::ordinary : Numbers::spread);
  const Matrix weight(rng, out_features, in_features,
                      below(rng, 2) == 0 ? Numbers::ordinary : Numbers::spread);
  Tensor<float> rounded(Shape{out_features, in_features});
  for (std::size_t n = 0; n < out_features; ++n) {
    for (std::size_t k = 0; k < in_features; ++k)
      rounded.view().row(n)[k] = bf16_to_float(float_to_bf16(weight.row(n)[k]));
  }
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const LinearKernels& bfloat16 = *table->bfloat16->linear;
    const bool rounds_inputs = bfloat16.convert_rows != nullptr;
    const std::vector<float> out = test::linear_product(bfloat16, in.view(), weight.view());
    const std::vector<float> int8_out = test::linear_product(*table->int8->linear, in.view(), weight.view());
    const test::Int8Steps steps = test::int8_steps(*table->int8->linear);
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t n = 0; n < out_features; ++n) {
        const std::size_t i = m * (out_features + test::kGap) + n;
        double exact = 0.0, sum = 0.0, precise = 0.0, int8_bound = 0.0;
        for (std::size_t begin = 0; begin < in_features; begin += kInt8Group) {
          double largest_x = 0.0, largest_w = 0.0, sum_x = 0.0, sum_w = 0.0;
          const std::size_t end = std::min(begin + kInt8Group, in_features);
          for (std::size_t k = begin; k < end; ++k) {
            const double x = in.row(m)[k], w = weight.row(n)[k];
            const double taken = rounds_inputs ? bf16_to_float(float_to_bf16(in.row(m)[k])) : x;
            exact += taken * static_cast<double>(rounded.view().row(n)[k]);
            sum += std::fabs(taken * static_cast<double>(rounded.view().row(n)[k]));
            precise += x * w;
            largest_x = std::max(largest_x, std::fabs(x));
            largest_w = std::max(largest_w, std::fabs(w));
            sum_x += std::fabs(x);
            sum_w += std::fabs(w);
          }
          // Inputs are off by half a step, up to 2 largest / (2 * 127) where the range lies on both sides of
          // zero; weights by half of theirs, which sums of neighbors may double.
          const double x_error = largest_x / steps.input_largest,
                       w_error = std::max(largest_w / 127, 2 * largest_w / (steps.pair_largest - 1)) / 2;
          const auto count = static_cast<double>(end - begin);
          int8_bound += 1.01 * (x_error * sum_w + w_error * sum_x + count * x_error * w_error);
          // Numbers below 1e-30 count as zero.
          int8_bound +=
              1e-30 * (sum_x + sum_w) + 8 * test::kRoundoff * (sum_x + count * x_error) * 1.1 * largest_w;
        }
        REQUIRE(std::fabs(static_cast<double>(out[i]) - exact) <=
                test::dot_bound(test::gemm_chain(in_features) + 1, sum));
        REQUIRE(std::fabs(static_cast<double>(int8_out[i]) - precise) <=
                int8_bound + test::dot_bound(8, std::fabs(precise)));
      }
    }
  }
}

void check_layer_norm(test::Rng& rng) {
  const std::size_t rows = size_up_to(rng, 6), columns = size_up_to(rng, 3000);
  const Matrix in(rng, rows, columns, any_numbers(rng));
  const Matrix gamma(rng, 1, columns, Numbers::ordinary), beta(rng, 1, columns, Numbers::ordinary);
  const float eps = std::exp2(rng.uniform(-40.0f, -10.0f));
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    Matrix out = in;  // in place
    table->layer_norm({.in = out.row(0),
                       .in_stride = out.stride,
                       .rows = rows,
                       .columns = columns,
                       .gamma = gamma.row(0),
                       .beta = beta.row(0),
                       .eps = eps,
                       .out = out.row(0),
                       .out_stride = out.stride});
    REQUIRE(keeps_gaps(in, out));
    for (std::size_t m = 0; m < rows; ++m) {
      const std::span<const float> row(in.row(m), columns);
      double mean = 0.0, variance = 0.0, largest = 0.0;
      for (const float x : row) mean += static_cast<double>(x) / static_cast<double>(columns);
      for (const float x : row) {
        variance += std::pow(static_cast<double>(x) - mean, 2) / static_cast<double>(columns);
        largest = std::max(largest, std::fabs(static_cast<double>(x)));
      }
      const bool is_finite = std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
      if (is_finite && (variance * static_cast<double>(columns) >= kFloatMax / 4 ||
                        largest * static_cast<double>(columns) >= kFloatMax / 4))
        continue;  // squares or their sum overflow
      const double sigma = std::sqrt(variance + static_cast<double>(eps));
      // The mean is off by no more than the roundings of its sum.
      const double mean_error = test::dot_bound(columns + 2, largest) / sigma;
      for (std::size_t c = 0; c < columns; ++c) {
        const float result = out.row(m)[c];
        if (!is_finite) {
          REQUIRE(std::isnan(result));
          continue;
        }
        const double normed = (static_cast<double>(row[c]) - mean) / sigma;
        const double exact =
            normed * static_cast<double>(gamma.row(0)[c]) + static_cast<double>(beta.row(0)[c]);
        const double variance_error =
            test::kRoundoff * static_cast<double>(columns + 8) + 2 * mean_error + mean_error * mean_error;
        const double bound = mean_error + std::fabs(normed) * std::min(variance_error, 1.0) +
                             8 * test::kRoundoff * (1.0 + std::fabs(exact) + std::fabs(normed));
        REQUIRE(std::fabs(static_cast<double>(result) - exact) <= bound);
      }
    }
  }
}

/// Softmax of a row of scores, in double precision.
void softmax(std::vector<double>& scores) {
  const double largest = *std::ranges::max_element(scores);
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

void check_attention(test::Rng& rng) {
  const std::size_t tokens = size_up_to(rng, 320), d = 2 * size_up_to(rng, 80);
  const std::size_t first = below(rng, tokens),
                    queries = 1 + below(rng, std::min<std::size_t>(tokens - first, 40));
  const bool is_causal = below(rng, 2) == 0;
  const auto kind = below(rng, 3) == 0 ? Numbers::denormal : Numbers::ordinary;
  const float size = std::exp2(rng.uniform(-3.0f, 4.0f));
  Matrix q(rng, tokens, d, Numbers::ordinary), k(rng, tokens, d, kind), v(rng, tokens, d, kind);
  for (float& x : q.numbers) x *= size;
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  const Matrix before(rng, queries, d, Numbers::ordinary);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const AttentionKernels& attention = table->float32->attention;
    Tensor<float> packed(Shape{attention.packed_floats(tokens, d)}),
        scratch(Shape{attention.scratch_floats(d)});
    attention.pack({.keys = k.row(0),
                    .key_stride = k.stride,
                    .values = v.row(0),
                    .value_stride = v.stride,
                    .num_tokens = tokens,
                    .last_token = tokens,
                    .head_dim = d,
                    .packed = packed.data(),
                    .scratch = scratch.data()});
    Matrix out = before;
    attention.attend({.queries = q.row(first),
                      .query_stride = q.stride,
                      .first_query = first,
                      .num_queries = queries,
                      .scale = scale,
                      .packed = packed.data(),
                      .num_tokens = tokens,
                      .head_dim = d,
                      .causal = is_causal,
                      .out = out.row(0),
                      .out_stride = out.stride,
                      .scratch = scratch.data()});
    REQUIRE(keeps_gaps(before, out));
    for (std::size_t i = 0; i < queries; ++i) {
      std::vector<double> scores(is_causal ? first + i + 1 : tokens);
      double largest_sum = 0.0, largest_value = 0.0;
      for (std::size_t t = 0; t < scores.size(); ++t) {
        double sum = 0.0;
        for (std::size_t c = 0; c < d; ++c) {
          const double term = static_cast<double>(scale) * static_cast<double>(q.row(first + i)[c]) *
                              static_cast<double>(k.row(t)[c]);
          scores[t] += term;
          sum += std::fabs(term);
          largest_value = std::max(largest_value, std::fabs(static_cast<double>(v.row(t)[c])));
        }
        largest_sum = std::max(largest_sum, sum);
      }
      softmax(scores);
      // An absolute error of a score is a relative one of its weight, in the numerator and in the sum.
      const double weight_bound = 2.0 * test::dot_bound(d + 6, 2.0 * largest_sum) + 16 * test::kRoundoff;
      const double bound = largest_value * (2.0 * weight_bound + test::dot_bound(scores.size() + 4, 2.0)) +
                           std::numeric_limits<float>::min();
      for (std::size_t c = 0; c < d; ++c) {
        double exact = 0.0;
        for (std::size_t t = 0; t < scores.size(); ++t) exact += scores[t] * static_cast<double>(v.row(t)[c]);
        REQUIRE(std::fabs(static_cast<double>(out.row(i)[c]) - exact) <= bound);
      }
    }
  }
}

void check_resample(test::Rng& rng) {
  const std::size_t width = size_up_to(rng, 400), height = size_up_to(rng, 60),
                    out_width = size_up_to(rng, 300), out_height = size_up_to(rng, 60);
  constexpr ResizeFilter kFilters[] = {ResizeFilter::lanczos, ResizeFilter::bilinear, ResizeFilter::bicubic,
                                       ResizeFilter::box, ResizeFilter::hamming};
  const bool is_pillow = below(rng, 2) == 0;
  const ResizeFilter filter = is_pillow ? kFilters[below(rng, 5)] : kFilters[1 + below(rng, 2)];
  const Resampler resampler = is_pillow ? Resampler::pillow : Resampler::torchvision_uint8;
  const std::size_t begin = below(rng, out_width);
  const FixedAxis columns({width, out_width, begin, begin + 1 + below(rng, out_width - begin)}, filter,
                          resampler);
  const FixedAxis rows({height, out_height, 0, out_height}, filter, resampler);
  const std::size_t in_bytes = columns.num_inputs() * 3, stride = in_bytes + below(rng, 20),
                    offset = below(rng, 65);
  std::vector<std::uint8_t> image(offset + (height - 1) * stride + in_bytes);
  for (std::uint8_t& byte : image)
    byte = below(rng, 3) == 0 ? static_cast<std::uint8_t>(255 * below(rng, 2))
                              : static_cast<std::uint8_t>(rng.next());
  const std::size_t between_bytes = columns.view().num_outputs * 3;
  const auto bytes_of = [&](const KernelTable& table) {
    std::vector<std::uint8_t> between(height * between_bytes), out(rows.view().num_outputs * between_bytes);
    table.resample.columns_rgb({image.data() + offset, stride, between.data(), between_bytes}, height,
                               in_bytes, columns.view());
    table.resample.rows(
        {between.data() + rows.first_input() * between_bytes, between_bytes, out.data(), between_bytes},
        between_bytes, rows.view());
    return out;
  };
  const std::vector<std::uint8_t> expected = bytes_of(find_kernels("reference"));
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    REQUIRE(bytes_of(*table) == expected);
  }
}

}  // namespace

TEST_CASE("kernels: random products agree with sums in double precision") {
  run_rounds(12, check_product);
}

TEST_CASE("kernels: random products of bfloat16 and int8 are as near as their steps allow") {
  run_rounds(12, check_narrow_products);
}

TEST_CASE("kernels: random rows are normalized as in double precision") {
  run_rounds(40, check_layer_norm);
}

TEST_CASE("kernels: random attention agrees with sums in double precision") {
  run_rounds(12, check_attention);
}

TEST_CASE("kernels: random resizes give the same bytes in every table") {
  run_rounds(30, check_resample);
}

}  // namespace vit::internal::kernels
