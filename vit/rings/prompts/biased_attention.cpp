// Attention with a bias of rows and columns of the keys' grid: a product, a softmax and a product for some
// queries of one head at a time.
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/rings/prompts/rows_attention.h"

namespace vit::internal {
namespace {

constexpr Where kBiasWhere{"attend_with_bias", ErrorKind::mismatch};
constexpr std::size_t kQueriesPerTask = 32;

/// One head: keys (M, d) and values (d, M) as weights of products.
struct PackedHead {
  const std::byte* keys;
  const std::byte* values;
};

/// scores (M) becomes exp(scale * scores + bias - maximum); returns the sum.
float weigh_keys(float* scores, std::size_t num_keys, float scale, const GridBias& bias, std::size_t query,
                 std::size_t head) {
  if (query < bias.skipped) {
    for (std::size_t i = 0; i < num_keys; ++i) scores[i] *= scale;
  } else {
    const std::size_t heads = bias.of_rows.num_columns(), columns = bias.of_columns.dim(1);
    const TensorView<const float> of_rows = bias.of_rows[query - bias.skipped];
    const TensorView<const float> of_columns = bias.of_columns[query - bias.skipped];
    const float* const first = of_columns.data() + head;
    for (std::size_t y = 0; y < bias.of_rows.dim(1); ++y) {
      const float of_row = of_rows.row(y)[head];
      float* const row = scores + y * columns;
      for (std::size_t x = 0; x < columns; ++x) row[x] = row[x] * scale + (of_row + first[x * heads]);
    }
  }
  const float most = *std::max_element(scores, scores + num_keys);
  double sum = 0.0;
  for (std::size_t i = 0; i < num_keys; ++i) {
    scores[i] = std::exp(scores[i] - most);
    sum += static_cast<double>(scores[i]);
  }
  return static_cast<float>(sum);
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
