// Normalization over the channels of every token, on the kernels of the models. Letters: M tokens, C
// channels.
#pragma once

#include <memory>
#include <span>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Tensors of a norm: RMSNorm without a beta, none without a gamma.
struct NormTensors {
  std::span<const float> gamma{};  // (C)
  std::span<const float> beta{};   // (C), or empty
  float eps = 1e-6f;               // added to the variance
};

/// LayerNorm (Ba et al. 2016), or RMSNorm (Zhang and Sennrich 2019) without a beta. Immutable; safe to share
/// between threads.
class VIT_API LayerNorm {
 public:
  /// gamma and beta (C) are copied. Throws Error if gamma is empty or beta has another length.
  LayerNorm(std::span<const float> gamma, std::span<const float> beta, float eps);
  ~LayerNorm();
  LayerNorm(LayerNorm&&) noexcept;
  LayerNorm& operator=(LayerNorm&&) noexcept;

  /// x (M, C) -> out (M, C), which may be x; leading dimensions are tokens. `threads`: 0 = all. Allocates
  /// nothing. Throws Error if the shapes do not match.
  void forward(TensorView<const float> x, TensorView<float> out, int threads = 0) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
