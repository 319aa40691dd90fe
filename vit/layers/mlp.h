// The two feed-forward networks of a block. Letters: M = rows, C = channels, F = hidden width.
#pragma once

#include <optional>
#include <span>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/workspace.h"

namespace vit {

struct MlpWeights {
  TensorView<const float> fc1_weight{};  // (F, C)
  std::span<const float> fc1_bias{};     // (F) or empty
  std::span<const float> norm_gamma{};   // (F) or empty: LayerNorm on the hidden vector
  std::span<const float> norm_beta{};    // (F) or empty
  TensorView<const float> fc2_weight{};  // (C, F)
  std::span<const float> fc2_bias{};     // (C) or empty
};

struct GatedMlpWeights {
  TensorView<const float> gate_weight{};   // (F, C)
  std::span<const float> gate_bias{};      // (F) or empty
  TensorView<const float> value_weight{};  // (F, C)
  std::span<const float> value_bias{};     // (F) or empty
  std::span<const float> norm_gamma{};     // (F) or empty: LayerNorm on the product
  std::span<const float> norm_beta{};      // (F) or empty
  TensorView<const float> fc2_weight{};    // (C, F)
  std::span<const float> fc2_bias{};       // (C) or empty
};

/// fc2(norm(act(fc1 x)))
class Mlp {
 public:
  /// Throws Error where shapes disagree.
  Mlp(const MlpWeights& weights, Activation activation, float norm_eps,
      const kernels::KernelTable& kernels = kernels::default_kernels(), Dtype dtype = Dtype::f32);

  /// out += scale * fc2(...) for normed (M, C) and out (M, C), which must not overlap; scale (C) or empty
  /// for 1. Uses workspace.hidden.
  void forward(TensorView<const float> normed, std::span<const float> scale, TensorView<float> out,
               Workspace& workspace, int threads) const;

  std::size_t hidden_dim() const noexcept { return fc1_.out_features(); }
  std::size_t weight_bytes() const;

 private:
  Linear fc1_;
  std::optional<LayerNorm> norm_;
  Linear fc2_;
  Activation activation_;
};

/// fc2(norm(act(gate x) * value x))
class GatedMlp {
 public:
  /// Throws Error where shapes disagree.
  GatedMlp(const GatedMlpWeights& weights, Activation activation, float norm_eps,
           const kernels::KernelTable& kernels = kernels::default_kernels(), Dtype dtype = Dtype::f32);

  /// As Mlp::forward.
  void forward(TensorView<const float> normed, std::span<const float> scale, TensorView<float> out,
               Workspace& workspace, int threads) const;

  std::size_t hidden_dim() const noexcept { return gate_.out_features(); }
  std::size_t weight_bytes() const;

 private:
  Linear gate_;
  Linear value_;
  std::optional<LayerNorm> norm_;
  Linear fc2_;
  Activation activation_;
};

}  // namespace vit
