// Multi-head self-attention with rotary position, and its core for queries that come from elsewhere
// (pooling). Letters: B = images, T = tokens, R = queries of an image, C = channels, H = heads, d = C / H.
#pragma once

#include <optional>
#include <span>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/workspace.h"
#include "vit/position/rope_table.h"

namespace vit {

/// A wish to see the softmax weights of one head of one image.
struct AttentionTap {
  std::size_t image = 0;
  std::size_t head = 0;
  TensorView<float> probabilities{};  // (R, T)
};

/// What one pass of attention works on.
struct AttentionInput {
  std::size_t num_images = 1;
  std::size_t num_tokens = 1;    // T
  std::size_t num_queries = 0;   // R: only the first R tokens of each image ask; 0 = all
  position::RopeFactors rope{};  // empty = no rotation
  std::size_t num_prefix = 0;    // leading tokens that are not turned
  std::span<const AttentionTap> taps{};
};

/// Queries, keys and values of B images; heads lie side by side in the columns.
struct AttentionRows {
  TensorView<const float> queries{};  // (B * query_rows_per_image, C)
  std::size_t query_rows_per_image = 1;
  TensorView<const float> keys{};    // (B * T, C)
  TensorView<const float> values{};  // (B * T, C)
};

/// out (B * R, C) = the heads' softmax(q k^T / sqrt(d)) v, side by side. Takes scratch from a workspace
/// reserved for T tokens and H heads (or pool_heads) and for `threads`. bf16 takes the bf16_attention of
/// `kernels`, i8 the int8_attention. Throws Error where shapes disagree.
void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, Workspace& workspace, int threads,
            const kernels::KernelTable& kernels = kernels::default_kernels(), Dtype dtype = Dtype::f32);

class Attention {
 public:
  /// qkv (C -> 3C), outputs ordered q, k, v and inside each head by head; norm over the concatenated heads,
  /// if any; proj (C -> C); dtype as attend takes it. Throws Error where shapes disagree or num_heads does
  /// not divide C.
  Attention(Linear qkv, std::optional<LayerNorm> norm, Linear proj, std::size_t num_heads,
            const kernels::KernelTable& kernels = kernels::default_kernels(), Dtype dtype = Dtype::f32);

  /// norm(in) as forward takes it, which is left in normed (B * T, C), too.
  PreparedRows prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                       const Workspace& workspace, int threads) const;
  /// out += scale * proj(attend(qkv(normed))). normed (B * T, C), a row for every token; out (B * R, C), the
  /// rows of the queries alone; scale (C) or empty for 1. normed and out must not overlap. Uses workspace.qkv
  /// and .heads.
  void forward(const PreparedRows& normed, const AttentionInput& input, std::span<const float> scale,
               TensorView<float> out, Workspace& workspace, int threads) const;

  std::size_t embed_dim() const noexcept { return proj_.out_features(); }
  std::size_t num_heads() const noexcept { return num_heads_; }
  std::size_t weight_bytes() const;

 private:
  /// Keys and values of all rows, queries of those that ask.
  void multiply_qkv(const PreparedRows& normed, const AttentionInput& input, std::size_t num_queries,
                    TensorView<float> qkv, const Workspace& workspace, int threads) const;

  Linear qkv_;
  std::optional<LayerNorm> norm_;
  Linear proj_;
  std::size_t num_heads_;
  const kernels::KernelTable* kernels_;
  Dtype dtype_;
};

}  // namespace vit
