// One encoder block: two residual lines, one after the other or side by side. Knows no family; what a model
// lacks (layer scale, gate, inner norms) is absent. Letters: B sequences, T tokens, R tokens of a sequence
// that are wanted, C = embed_dim.
#pragma once

#include <span>

#include "vit/layers/attention.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/mlp.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// The end of both branches of a block, if a model has more than the sum.
struct BranchEnd {
  std::optional<LayerNorm> norm{};      // (C)
  Tensor<float> scale{};                // (C): layer scale
  std::optional<LayerNorm> sum_norm{};  // (C): of the sum with the tokens
};

class Block {
 public:
  /// Without a norm2 both branches read norm1(x), and their sum is added; without both norms they read x, one
  /// after the other.
  Block(std::optional<LayerNorm> norm1, Attention attention, BranchEnd end1, std::optional<LayerNorm> norm2,
        Mlp mlp, BranchEnd end2);

  /// x (B * T, C) += ... in place, for all tokens, which are the queries of `input`.
  void forward(TensorView<float> x, const AttentionInput& input, const Pass& pass) const;
  /// The query rows of x (B * T, C), which is only read -> out (B * R, C). These rows are bit-identical to
  /// those of the full pass.
  void forward_queries(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                       const Pass& pass) const;
  /// Attention::sum_probabilities() for the input x (B * T, C) of this block.
  void sum_probabilities(TensorView<const float> x, const AttentionInput& input,
                         std::span<const double> weights, std::span<double> sums, const Pass& pass) const {
    attention_.sum_probabilities({norm_of(norm1_), x}, input, weights, sums, pass);
  }

 private:
  /// x (B * T, C) -> out (B * R, C), which holds the queries' rows of x.
  void forward_parallel(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                        const Pass& pass) const;

  static const LayerNorm* norm_of(const std::optional<LayerNorm>& norm) { return norm ? &*norm : nullptr; }
  bool is_parallel() const noexcept { return norm1_ && !norm2_; }

  std::optional<LayerNorm> norm1_;
  Attention attention_;
  BranchEnd end1_;
  std::optional<LayerNorm> norm2_;
  Mlp mlp_;
  BranchEnd end2_;
};

}  // namespace vit::internal
