// Attention with a bias of rows and columns of the keys' grid: a product, a softmax and a product for some
// queries of one head at a time.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "vit/base/check.h"
#include "vit/rings/prompts/rows_attention.h"

namespace vit::internal {
namespace {

constexpr Where kBiasWhere{"attend_with_bias", ErrorKind::mismatch};
constexpr std::size_t kQueriesPerTask = 32;
constexpr std::size_t kMostColumns = 1024;  // of the grid

/// One head: keys (M, d) and values (d, M) as weights of products.
struct PackedHead {
  const std::byte* keys;
  const std::byte* values;
};

constexpr std::size_t kAtOnce = 16;  // independent maxima and sums, joined at the end

float largest_of(const float* values, std::size_t count) {
  float most[kAtOnce];
  std::fill_n(most, kAtOnce, values[0]);
  std::size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (std::size_t k = 0; k < kAtOnce; ++k) most[k] = values[i + k] > most[k] ? values[i + k] : most[k];
  }
  float out = *std::max_element(most, most + kAtOnce);
  for (; i < count; ++i) out = std::max(out, values[i]);
  return out;
}

/// exp(x) for each x <= 0, to two units in the last place; exp(-87) below -87. Steps of all numbers one after
/// the other, which the compiler turns into vectors.
void exponentiate(float* x) {
  constexpr float kLog2E = 1.44269504f, kRound = 12582912.0f;          // 1.5 * 2^23: rounds to an integer
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // the first has few bits
  constexpr std::int32_t kBias = 127, kMantissa = 23;
  constexpr auto kLeast = std::bit_cast<std::int32_t>(-87.0f), kSign = std::bit_cast<std::int32_t>(-0.0f);
  std::array<float, kAtOnce> limited, shifted, p;
  std::copy_n(x, kAtOnce, limited.begin());
  auto bits = std::bit_cast<std::array<std::int32_t, kAtOnce>>(limited);
  for (std::int32_t& one : bits) {  // of negative numbers, the larger the bits the less the number
    one |= kSign;
    one = one < kLeast ? one : kLeast;
  }
  limited = std::bit_cast<std::array<float, kAtOnce>>(bits);
  for (std::size_t k = 0; k < kAtOnce; ++k) {
    shifted[k] = limited[k] * kLog2E + kRound;
    const float n = shifted[k] - kRound;
    const float r = (limited[k] - n * kLn2High) - n * kLn2Low;  // -ln 2 / 2 .. ln 2 / 2
    float sum = 1.9875691500e-4f;                               // Cephes, expf.c
    sum = sum * r + 1.3981999507e-3f;
    sum = sum * r + 8.3334519073e-3f;
    sum = sum * r + 4.1665795894e-2f;
    sum = sum * r + 1.6666665459e-1f;
    sum = sum * r + 5.0000001201e-1f;
    p[k] = sum * r * r + r + 1.0f;
  }
  bits = std::bit_cast<std::array<std::int32_t, kAtOnce>>(shifted);
  for (std::int32_t& one : bits) one = (one - std::bit_cast<std::int32_t>(kRound) + kBias) << kMantissa;
  const auto powers = std::bit_cast<std::array<float, kAtOnce>>(bits);
  for (std::size_t k = 0; k < kAtOnce; ++k) x[k] = p[k] * powers[k];
}

/// values become exp(values - most); returns their sum.
float exponentials_of(float* values, std::size_t count, float most) {
  std::array<float, kAtOnce> sums{};
  double sum = 0.0;
  std::size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (std::size_t k = 0; k < kAtOnce; ++k) values[i + k] -= most;
    exponentiate(values + i);
    for (std::size_t k = 0; k < kAtOnce; ++k) sums[k] += values[i + k];
    if (i / kAtOnce % 32 != 31) continue;  // short sums in float32, long ones in float64
    for (float& part : sums) sum += static_cast<double>(std::exchange(part, 0.0f));
  }
  for (const float part : sums) sum += static_cast<double>(part);
  float rest[kAtOnce];
  for (std::size_t k = 0; k < kAtOnce; ++k) rest[k] = i + k < count ? values[i + k] - most : 0.0f;
  exponentiate(rest);
  for (std::size_t k = 0; i < count; ++i, ++k) sum += static_cast<double>(values[i] = rest[k]);
  return static_cast<float>(sum);
}

/// scores (M) becomes exp(scale * scores + bias - maximum); returns the sum.
float weigh_keys(float* scores, std::size_t num_keys, float scale, const GridBias& bias, std::size_t query,
                 std::size_t head) {
  if (query < bias.skipped) {
    for (std::size_t i = 0; i < num_keys; ++i) scores[i] *= scale;
  } else {
    const std::size_t heads = bias.of_rows.num_columns(), columns = bias.of_columns.dim(1);
    const TensorView<const float> of_rows = bias.of_rows[query - bias.skipped];
    const TensorView<const float> of_columns = bias.of_columns[query - bias.skipped];
    float first[kMostColumns];  // of this head, side by side
    for (std::size_t x = 0; x < columns; ++x) first[x] = of_columns.data()[x * heads + head];
    for (std::size_t y = 0; y < bias.of_rows.dim(1); ++y) {
      const float of_row = of_rows.row(y)[head];
      float* const row = scores + y * columns;
      for (std::size_t x = 0; x < columns; ++x) row[x] = row[x] * scale + (of_row + first[x]);
    }
  }
  return exponentials_of(scores, num_keys, largest_of(scores, num_keys));
}

}  // namespace

void attend_with_bias(TensorView<const float> queries, TensorView<const float> keys,
                      TensorView<const float> values, std::size_t num_heads, const GridBias& bias,
                      TensorView<float> out, const kernels::LinearKernels& kernels, PromptMemory& memory) {
  const std::size_t num_keys = keys.num_rows(), width = queries.num_columns() / num_heads;
  VIT_CHECK(bias.of_rows.rank() == 3 && bias.of_columns.rank() == 3 &&
                bias.of_rows.dim(1) * bias.of_columns.dim(1) == num_keys &&
                bias.of_rows.dim(0) + bias.skipped == queries.num_rows() && bias.of_rows.dim(2) == num_heads,
            kBiasWhere, "a bias of rows ", bias.of_rows.shape().to_string(), " and columns ",
            bias.of_columns.shape().to_string(), " for ", queries.num_rows(), " queries and ", num_keys,
            " keys");
  VIT_CHECK(bias.of_columns.dim(1) <= kMostColumns, kBiasWhere, "a grid of ", bias.of_columns.dim(1),
            " columns; there are at most ", kMostColumns);
  const auto bytes_of = [&](std::size_t outputs, std::size_t inputs) {
    return round_up(kernels.packed_bytes(round_up(outputs, kernels.panel_columns), inputs), 64);
  };
  const std::size_t key_bytes = bytes_of(num_keys, width), value_bytes = bytes_of(width, num_keys);
  auto* const packed_keys =
      reinterpret_cast<std::byte*>(memory.packed_keys.rows(num_heads, key_bytes / sizeof(float)).data());
  auto* const packed_values =
      reinterpret_cast<std::byte*>(memory.packed_values.rows(num_heads, value_bytes / sizeof(float)).data());
  const TensorView<float> columns = memory.turned_values.rows(num_heads * width, num_keys);
  parallel_for(num_heads, memory.threads, [&](std::size_t head, int) {
    for (std::size_t i = 0; i < num_keys; ++i) {
      const float* const from = values.row(i) + head * width;
      for (std::size_t c = 0; c < width; ++c) columns.row(head * width + c)[i] = from[c];
    }
    kernels.pack({.weight = keys.data() + head * width,
                  .stride = keys.row_stride(),
                  .out_features = num_keys,
                  .in_features = width,
                  .packed = packed_keys + head * key_bytes});
    kernels.pack({.weight = columns.row(head * width),
                  .stride = num_keys,
                  .out_features = width,
                  .in_features = num_keys,
                  .packed = packed_values + head * value_bytes});
  });
  const std::size_t stride = round_up(num_keys, 16), tiles = ceil_div(queries.num_rows(), kQueriesPerTask);
  const TensorView<float> all_scores =
      memory.scores.rows(static_cast<std::size_t>(resolve_threads(memory.threads)), kQueriesPerTask * stride);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  parallel_for(num_heads * tiles, memory.threads, [&](std::size_t task, int thread) {
    const std::size_t head = task / tiles, first = task % tiles * kQueriesPerTask;
    const std::size_t count = std::min(kQueriesPerTask, queries.num_rows() - first);
    float* const scores = all_scores.row(static_cast<std::size_t>(thread));
    kernels.gemm({.in = reinterpret_cast<const std::byte*>(queries.row(first) + head * width),
                  .in_step = queries.row_stride() * sizeof(float),
                  .rows = count,
                  .packed = packed_keys + head * key_bytes,
                  .in_features = width,
                  .column_begin = 0,
                  .column_end = num_keys,
                  .out = scores,
                  .out_stride = stride});
    float sums[kQueriesPerTask];
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = weigh_keys(scores + i * stride, num_keys, scale, bias, first + i, head);
    kernels.gemm({.in = reinterpret_cast<const std::byte*>(scores),
                  .in_step = stride * sizeof(float),
                  .rows = count,
                  .packed = packed_values + head * value_bytes,
                  .in_features = num_keys,
                  .column_begin = 0,
                  .column_end = width,
                  .out = out.row(first) + head * width,
                  .out_stride = out.row_stride()});
    for (std::size_t i = 0; i < count; ++i) {
      float* const row = out.row(first + i) + head * width;
      for (std::size_t c = 0; c < width; ++c) row[c] /= sums[i];
    }
  });
}

}  // namespace vit::internal
