// One encoder block: two residual lines. Knows no family; what a model lacks (layer scale, gate, inner norms)
// is absent. Letters: B sequences, T tokens, R tokens of a sequence that are wanted, C = embed_dim.
#pragma once

#include <span>

#include "vit/layers/attention.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/mlp.h"
#include "vit/layers/pass.h"

namespace vit::internal {

class Block {
 public:
  /// scale1, scale2: layer scale (C), or empty for none.
  Block(LayerNorm norm1, Attention attention, Tensor<float> scale1, LayerNorm norm2, Mlp mlp,
        Tensor<float> scale2);

  /// x (B * T, C) += ... in place, for all tokens, which are the queries of `input`.
  void forward(TensorView<float> x, const AttentionInput& input, const Pass& pass) const;
  /// Of x (B * T, C), which is read, the rows that are queries -> out (B * R, C). The bits of these rows are
  /// those of the full pass.
  void forward_queries(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                       const Pass& pass) const;
  /// Attention::sum_probabilities() of what x (B * T, C) gives in this block.
  void sum_probabilities(TensorView<const float> x, const AttentionInput& input,
                         std::span<const double> weights, std::span<double> sums, const Pass& pass) const {
    attention_.sum_probabilities({norm1_, x}, input, weights, sums, pass);
  }

 private:
  LayerNorm norm1_;
  Attention attention_;
  Tensor<float> scale1_;
  LayerNorm norm2_;
  Mlp mlp_;
  Tensor<float> scale2_;
};

}  // namespace vit::internal
