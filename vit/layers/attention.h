// Multi-head self-attention: qkv -> norms of heads -> attend() -> proj. Letters: B = sequences, T = tokens, R
// = queries of a sequence, H = heads, d = width of a head, A = H d, G = K d: K heads of keys and values, C =
// channels. If lengths differ, B * T and B * R are the sums.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vit/layers/attention_pass.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"

namespace vit::internal {

/// Norms over the channels of each head, if a model has them.
struct HeadNorms {
  std::optional<LayerNorm> queries{}, keys{}, values{};  // (d)
};

class Attention {
 public:
  /// qkv (A + 2G, C), rows ordered q, k, v; norm over the concatenated heads (A), if any; proj (C, A). Throws
  /// Error if shapes disagree.
  Attention(Linear qkv, HeadNorms head_norms, std::optional<LayerNorm> norm, Linear proj,
            std::size_t num_heads, const kernels::AttentionKernels& kernels);

  /// From now on q, k and v are computed by three layers that clip, (A, C), (G, C) and (G, C), instead of
  /// qkv.
  void set_clipped(std::vector<Linear> layers) { clipped_ = std::move(layers); }

  /// out.add_to += out.scale * proj(attend(qkv(norm(x)))). x (B * T, C), one row per token; add_to (B *
  /// R, C), the rows of the queries only, which may be x. Uses activations.normed, .qkv and .heads.
  void forward(const NormedRows& x, const AttentionInput& input, const Residual& out, const Pass& pass) const;

  /// sums (B * T) = for every sequence the rows of its attention probabilities, averaged over the heads and
  /// weighted by weights (B * T), summed. x as in forward(). Uses activations.normed, .qkv and .heads.
  void sum_probabilities(const NormedRows& x, const AttentionInput& input, std::span<const double> weights,
                         std::span<double> sums, const Pass& pass) const;

  std::size_t embed_dim() const noexcept { return proj_.out_features(); }     // C
  std::size_t attention_dim() const noexcept { return proj_.in_features(); }  // A
  std::size_t num_heads() const noexcept { return num_heads_; }
  /// G: channels of all keys of a token.
  std::size_t key_dim() const noexcept { return (qkv_.out_features() - attention_dim()) / 2; }

 private:
  /// Keys and values of all rows, queries of the query rows, in activations.qkv.
  AttentionRows compute_qkv(const NormedRows& x, const AttentionInput& input, const Pass& pass) const;
  void normalize_heads(TensorView<float> qkv, const Pass& pass) const;
  void multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                    const Pass& pass) const;

  Linear qkv_;
  HeadNorms head_norms_;
  std::vector<Linear> clipped_;  // q, k and v, or none
  std::optional<LayerNorm> norm_;
  Linear proj_;
  std::size_t num_heads_;
  const kernels::AttentionKernels* kernels_;
};

}  // namespace vit::internal
