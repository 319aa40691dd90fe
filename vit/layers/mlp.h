// The two feed-forward networks of a block. Letters: M = rows, C = channels, F = hidden width.
#pragma once

#include <optional>
#include <span>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/workspace.h"

namespace vit {

/// fc2(norm(act(fc1 x)))
class Mlp {
 public:
  /// fc1 (C -> F), norm over the hidden vector, if any, fc2 (F -> C). Throws Error where shapes disagree.
  Mlp(Linear fc1, std::optional<LayerNorm> norm, Linear fc2, Activation activation);

  /// norm(in) as forward takes it, which is left in normed (M, C), too.
  PreparedRows prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                       const Workspace& workspace, int threads) const;
  /// out += scale * fc2(...) for normed (M, C) and out (M, C), which must not overlap; scale (C) or empty
  /// for 1. Uses workspace.hidden.
  void forward(const PreparedRows& normed, std::span<const float> scale, TensorView<float> out,
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
  /// gate and value (C -> F), norm over their product, if any, fc2 (F -> C). Throws Error where shapes
  /// disagree.
  GatedMlp(Linear gate, Linear value, std::optional<LayerNorm> norm, Linear fc2, Activation activation);

  /// As those of Mlp.
  PreparedRows prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                       const Workspace& workspace, int threads) const;
  void forward(const PreparedRows& normed, std::span<const float> scale, TensorView<float> out,
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
