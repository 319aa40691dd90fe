// One encoder block: two residual lines. Knows no family; what a model lacks (layer scale, gate, inner norms)
// is absent. Letters: B images, T tokens, R rows of an image that are wanted, C = embed_dim.
#pragma once

#include <span>
#include <variant>

#include "vit/layers/attention.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/mlp.h"
#include "vit/layers/workspace.h"

namespace vit {

class Block {
 public:
  /// scale1, scale2: layer scale (C), or empty for none.
  Block(LayerNorm norm1, Attention attention, Tensor<float> scale1, LayerNorm norm2,
        std::variant<Mlp, GatedMlp> mlp, Tensor<float> scale2);

  /// x (B * T, C) += ... in place, for all tokens.
  void forward(TensorView<float> x, const AttentionInput& input, Workspace& workspace, int threads) const;
  /// The same for the first R = input.num_queries tokens of every image alone: x (B * T, C) is read, the
  /// result stands in out (B * R, C). The bits of these rows are those of the full pass.
  void forward_leading(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                       Workspace& workspace, int threads) const;

 private:
  /// norm(x), for `branch`.
  template <typename Branch>
  static PreparedRows prepare(const Branch& branch, const LayerNorm& norm, TensorView<const float> x,
                              Workspace& workspace, int threads);
  void forward_mlp(TensorView<float> x, Workspace& workspace, int threads) const;

  LayerNorm norm1_;
  Attention attention_;
  Tensor<float> scale1_;
  LayerNorm norm2_;
  std::variant<Mlp, GatedMlp> mlp_;
  Tensor<float> scale2_;
};

}  // namespace vit
