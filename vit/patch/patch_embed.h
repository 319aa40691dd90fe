// From pixels to the input tokens of the encoder: patches, projection, positions, preceded by the prefix
// tokens. Letters: B images, N patches, T = prefix + N tokens, C = embed_dim, P = patch_size, K =
// num_channels.
#pragma once

#include <optional>

#include "vit/base/tensor.h"
#include "vit/config/patch.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"
#include "vit/position/position.h"

namespace vit::internal {

/// What normalizes pixels before they are projected, and what comes of it, where a model has that.
struct PatchNorms {
  Tensor<float> mean{}, std{};           // (K), of PixelRule::stored
  std::optional<LayerNorm> pixels{};     // (K P P), on what is projected
  std::optional<LayerNorm> projected{};  // (C), before positions are added
  std::optional<LayerNorm> tokens{};     // (C), after positions are added, of all tokens
};

/// Planes of a step of an input with `planes`: all of them if they are those of one image, which is repeated.
constexpr std::size_t planes_of_step(std::size_t planes, std::size_t num_steps, std::size_t num_channels) {
  return planes == num_channels ? planes : planes / num_steps;
}

class PatchEmbed {
 public:
  /// projection: (C, K P P) with or without bias; prefix: (prefix tokens, C), class token first, then
  /// distillation token, then registers; `cut` as of patchify(), and its rule for pixels. of_clips: (C,
  /// frames K P P), frame by frame, if a model has patches of several frames.
  PatchEmbed(Linear projection, Tensor<float> prefix, const PatchConfig& cut, PatchNorms norms = {},
             std::optional<Linear> of_clips = {});

  std::size_t num_prefix_tokens() const noexcept { return prefix_.empty() ? 0 : prefix_.dim(0); }

  /// pixels (B, K, H, W) -> tokens (B, T, C) with the position rows added, and normalized if a model has
  /// that. Uses activations.patches. Of positions with several steps pixels are (B, steps planes, H, W) and N
  /// = steps h w; if those of a step are the planes of several frames, its patches are projected as such. The
  /// planes of one image (B, K, H, W) are those of each step.
  void forward(TensorView<const float> pixels, const PositionContext& position, TensorView<float> tokens,
               const Pass& pass) const;

 private:
  /// What is projected of the numbers of one patch, K P P of them, in place.
  void normalize_pixels(float* patch) const;
  /// Pixels (K, H, W) of a step -> row `row` of its grid in `patches` (N, K P P), those of `step`.
  void cut(TensorView<const float> pixels, const PositionContext& position, std::size_t step, std::size_t row,
           TensorView<float> patches) const;
  /// patches (N, K P P), which are scratch -> tokens (N, C): norms, projection, and the position rows `added`
  /// (N, C), if there are any.
  void project(TensorView<float> patches, TensorView<const float> added, TensorView<float> tokens,
               const Pass& pass) const;
  /// The prefix of one image, tokens (T, C), with the position rows `added` (p, C) to the first of them.
  void write_prefix(TensorView<const float> added, TensorView<float> tokens) const;
  /// patches (N, K P P) of windows -> tokens (T, C), those of each window after its token.
  void project_windows(TensorView<float> patches, const PositionContext& position, TensorView<float> tokens,
                       const Pass& pass) const;

  Linear projection_;
  Tensor<float> prefix_;  // (prefix, C)
  PatchConfig cut_;
  PatchNorms norms_;
  std::optional<Linear> of_clips_;
};

}  // namespace vit::internal
