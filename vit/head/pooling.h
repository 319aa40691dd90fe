// From the tokens of an image to its embedding: class token, means, or attention with a learned query.
// Letters: B images, T = prefix + N tokens, C = embed_dim.
#pragma once

#include <optional>

#include "vit/config.h"
#include "vit/layers/attention.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/mlp.h"
#include "vit/layers/workspace.h"

namespace vit {

/// Pooling by attention: one learned query over all tokens, then y + mlp(norm(y)). Source: Lee et al., "Set
/// Transformer" (2019), in the form of SigLIP and Perception Encoder: the query itself is not added.
class AttentionPool {
 public:
  /// query: W_q probe + b_q (C), the same for every image; kv: (2C, C), rows ordered k, v; dtype as attend
  /// takes it.
  AttentionPool(Tensor<float> query, Linear kv, Linear proj, LayerNorm norm, Mlp mlp, std::size_t num_heads,
                const kernels::KernelTable& kernels, Dtype dtype = Dtype::f32);

  /// tokens (B, T, C) -> pooled (B, C); `queries` (B, C) and `heads` (B, C) are scratch. Uses workspace.qkv
  /// and .hidden.
  void forward(TensorView<const float> tokens, TensorView<float> queries, TensorView<float> heads,
               TensorView<float> pooled, Workspace& workspace, int threads) const;

 private:
  Tensor<float> query_;
  Linear kv_;
  Linear proj_;
  LayerNorm norm_;
  Mlp mlp_;
  std::size_t num_heads_;
  const kernels::KernelTable* kernels_;
  Dtype dtype_;
};

/// Token `index` of every image: tokens (B, T, C) -> out (B, C).
void pool_token(TensorView<const float> tokens, std::size_t index, TensorView<float> out);
/// Mean of tokens [first, last): tokens (B, T, C) -> out (B, C), summed in double.
void pool_mean(TensorView<const float> tokens, std::size_t first, std::size_t last, TensorView<float> out);

}  // namespace vit
