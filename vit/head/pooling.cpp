#include "vit/head/pooling.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {

namespace {

constexpr Where kPoolMean{"pool_mean", ErrorKind::argument};

}  // namespace

AttentionPool::AttentionPool(Tensor<float> query, Linear kv, Linear proj, LayerNorm norm, Mlp mlp,
                             std::size_t num_heads, const kernels::AttentionKernels& kernels)
    : query_(std::move(query)),
      kv_(std::move(kv)),
      proj_(std::move(proj)),
      norm_(std::move(norm)),
      mlp_(std::move(mlp)),
      num_heads_(num_heads),
      kernels_(&kernels) {}

void AttentionPool::forward(TensorView<const float> tokens, TensorView<float> pooled,
                            const Pass& pass) const {
  Activations& a = pass.activations;
  const std::size_t num_images = tokens.dim(0);
  const std::size_t num_tokens = tokens.dim(1);
  const std::size_t width = tokens.dim(2);
  const std::size_t num_rows = num_images * num_tokens;
  const TensorView<float> queries(a.head_row.data(), Shape{num_images, width});
  const TensorView<float> heads(a.head_row.data() + num_images * width, Shape{num_images, width});
  const TensorView<float> kv = Activations::view_rows(a.qkv, num_rows, 2 * width);
  kv_.forward(TensorView<const float>(tokens.data(), Shape{num_rows, width}), kv, pass);
  for (std::size_t image = 0; image < num_images; ++image)
    std::ranges::copy(query_.flat(), queries.row(image));

  const TensorView<const float> keys(kv.data(), Shape{num_rows, width}, kv.row_stride());
  const TensorView<const float> values(kv.data() + width, Shape{num_rows, width}, kv.row_stride());
  const Sequences queried(num_images, 1);
  attend({.queries = queries, .query_tokens = queried, .keys = keys, .values = values},
         {.sequences = Sequences(num_images, num_tokens), .queries = queried}, num_heads_, heads, *kernels_,
         pass);
  proj_.forward(heads, pooled, pass);
  mlp_.forward({norm_, pooled}, {.add_to = pooled}, pass);  // pooled += mlp(norm(pooled))
}

void pool_token(TensorView<const float> tokens, std::size_t index, TensorView<float> out) {
  for (std::size_t image = 0; image < tokens.dim(0); ++image) {
    std::copy_n(tokens[image].row(index), tokens.dim(2), out.row(image));
  }
}

void pool_mean(TensorView<const float> tokens, std::size_t first, std::size_t last, TensorView<float> out) {
  VIT_CHECK(first < last && last <= tokens.dim(1), kPoolMean, "no tokens from ", first, " to ", last,
            " among ", tokens.dim(1));
  constexpr std::size_t kColumns = 64;  // summed together, so that rows are read in order
  const std::size_t width = tokens.dim(2);
  for (std::size_t image = 0; image < tokens.dim(0); ++image) {
    for (std::size_t begin = 0; begin < width; begin += kColumns) {
      const std::size_t columns = std::min(kColumns, width - begin);
      double sums[kColumns] = {};
      for (std::size_t t = first; t < last; ++t) {
        const float* const row = tokens[image].row(t) + begin;
        for (std::size_t c = 0; c < columns; ++c) sums[c] += static_cast<double>(row[c]);
      }
      for (std::size_t c = 0; c < columns; ++c) {
        out.row(image)[begin + c] = static_cast<float>(sums[c] / static_cast<double>(last - first));
      }
    }
  }
}

}  // namespace vit::internal
