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

/// What differential attention does with the outputs a and b of the two halves of a head:
/// factor * norm(a - lambda b).
struct Differential {
  float lambda = 0.0f;
  float factor = 1.0f;
  LayerNorm norm;  // (d)
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

  /// From now on each head attends twice, with half of its channels of q and k: the first half and the second
  /// read the same values. Norms of q and k are then those of a half.
  void set_differential(Differential differential);

  /// out.add_to += out.scale * proj(attend(qkv(norm(x)))). x (B * T, C), one row per token; add_to (B *
  /// R, C), the rows of the queries only, which may be x. Uses activations.normed, .qkv and .heads.
  void forward(const NormedRows& x, const AttentionInput& input, const Residual& out, const Pass& pass) const;

  /// sums (B * T) = for every sequence the rows of its attention probabilities, averaged over the heads and
  /// weighted by weights (B * T), summed. x as in forward(). Uses activations.normed, .qkv and .heads.
  void sum_probabilities(const NormedRows& x, const AttentionInput& input, std::span<const double> weights,
                         std::span<double> sums, const Pass& pass) const;

  std::size_t embed_dim() const noexcept { return proj_.out_features(); }     // C
  std::size_t attention_dim() const noexcept { return proj_.in_features(); }  // A
  /// G: channels of all keys of a token.
  std::size_t key_dim() const noexcept { return (qkv_.out_features() - attention_dim()) / 2; }

 private:
  /// Keys and values of all rows, queries of the query rows, in activations.qkv.
  AttentionRows compute_qkv(const NormedRows& x, const AttentionInput& input, const Pass& pass) const;
  void normalize_heads(TensorView<float> qkv, const Pass& pass) const;
  /// Differential attention: that of the second half of each head is subtracted from that of the first.
  void attend_twice(const AttentionRows& rows, const AttentionInput& input, TensorView<float> heads,
                    const Pass& pass) const;
  /// `input`, with the keys and values that complete windows.
  AttentionInput completed(const AttentionInput& input) const;
  void multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                    const Pass& pass) const;

  Linear qkv_;
  HeadNorms head_norms_;
  std::vector<Linear> clipped_;  // q, k and v, or none
  std::optional<LayerNorm> norm_;
  Linear proj_;
  std::size_t num_heads_;
  const kernels::AttentionKernels* kernels_;
  std::optional<Differential> differential_;
  Tensor<float> padding_;  // (A + 2 G): q, k and v of a token of zeros
};

}  // namespace vit::internal
