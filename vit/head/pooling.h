// From the tokens of an image to its embedding: class token, means, or attention with a learned query.
// Letters: B images, T = prefix + N tokens, C = embed_dim.
#pragma once

#include <optional>

#include "vit/layers/attention.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/mlp.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// Pooling by attention: one learned query over all tokens, then y + mlp(norm(y)). Source: Lee et al., "Set
/// Transformer" (2019), in the form of SigLIP and Perception Encoder: the query itself is not added.
class AttentionPool {
 public:
  /// query: W_q probe + b_q (C), the same for every image; kv: (2C, C), rows ordered k, v.
  AttentionPool(Tensor<float> query, Linear kv, Linear proj, LayerNorm norm, Mlp mlp, std::size_t num_heads,
                const kernels::AttentionKernels& kernels);

  /// tokens (B, T, C) -> pooled (B, C). Uses activations.head_row, and .qkv, .normed and .hidden of a block.
  void forward(TensorView<const float> tokens, TensorView<float> pooled, const Pass& pass) const;

 private:
  Tensor<float> query_;
  Linear kv_;
  Linear proj_;
  LayerNorm norm_;
  Mlp mlp_;
  std::size_t num_heads_;
  const kernels::AttentionKernels* kernels_;
};

/// Token `index` of every image: tokens (B, T, C) -> out (B, C).
void pool_token(TensorView<const float> tokens, std::size_t index, TensorView<float> out);
/// Mean of tokens [first, last): tokens (B, T, C) -> out (B, C), summed in double.
void pool_mean(TensorView<const float> tokens, std::size_t first, std::size_t last, TensorView<float> out);

}  // namespace vit::internal
