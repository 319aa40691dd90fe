// The feed-forward network of a block. Letters: M = rows, C = channels, F = hidden width.
#pragma once

#include <optional>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// The first products of an MLP, C -> F each.
struct MlpInput {
  std::optional<Linear> gate{};  // plain if absent
  Linear fc1;
};

/// fc2(norm(act(fc1 x))), or fc2(norm(act(gate x) * fc1 x)) if there is a gate.
class Mlp {
 public:
  /// norm over the hidden vector (F), if any; fc2 (F -> C). Throws Error if shapes disagree.
  Mlp(MlpInput in, std::optional<LayerNorm> norm, Linear fc2, Activation activation);

  /// out.add_to += out.scale * fc2(...) for norm(x). x and add_to (M, C), which may be the same. Uses
  /// activations.normed and .hidden.
  void forward(const NormedRows& x, const Residual& out, const Pass& pass) const;

  std::size_t hidden_dim() const noexcept { return in_.fc1.out_features(); }

 private:
  void forward_clipped(const NormedRows& x, const Residual& out, const Pass& pass) const;

  MlpInput in_;
  std::optional<LayerNorm> norm_;
  Linear fc2_;
  Activation activation_;
};

}  // namespace vit::internal
