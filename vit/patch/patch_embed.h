// From pixels to the tokens that enter the encoder: patches, projection, positions, and the prefix tokens in
// front. Letters: B images, N patches, T = prefix + N tokens, C = embed_dim, P = patch_size.
#pragma once

#include "vit/base/stage_times.h"
#include "vit/base/tensor.h"
#include "vit/layers/linear.h"
#include "vit/position/position.h"

namespace vit {

class PatchEmbed {
 public:
  /// projection: (C, 3 P P) with or without bias; prefix: (prefix tokens, C), class token first, then
  /// distillation token, then registers.
  PatchEmbed(Linear projection, Tensor<float> prefix, std::size_t patch_size);

  std::size_t num_prefix_tokens() const noexcept { return prefix_.empty() ? 0 : prefix_.dim(0); }
  std::size_t patch_size() const noexcept { return patch_size_; }

  /// pixels (B, 3, H, W) -> tokens (B, T, C) with the position rows added; `rows` (B, N, 3 P P) and `memory`,
  /// for N rows, are scratch.
  void forward(TensorView<const float> pixels, const position::PositionContext& position,
               TensorView<float> rows, TensorView<float> tokens, const QuantisedMemory& memory, int threads,
               StageTimes* stages = nullptr) const;

 private:
  Linear projection_;
  Tensor<float> prefix_;  // (prefix, C)
  std::size_t patch_size_;
};

}  // namespace vit
