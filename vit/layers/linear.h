// Linear: y = x W^T + b and what is fused behind it. Hides how the weight is stored and who multiplies.
// Letters: M = rows, K = input features, N = output features.
#pragma once

#include <span>

#include "vit/base/activation.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"

namespace vit {

/// out = residual + scale * (multiplier * activation(x W^T + b)); an empty member leaves its term out.
struct LinearEpilogue {
  Activation activation = Activation::none;
  TensorView<const float> multiplier{};  // (M, N), may be out
  std::span<const float> scale{};        // (N)
  TensorView<const float> residual{};    // (M, N), may be out
};

class Linear {
 public:
  /// weight (N, K); bias (N) or empty. Copies both, in the layout of `kernels`. Throws Error where shapes
  /// disagree.
  Linear(TensorView<const float> weight, std::span<const float> bias,
         const kernels::KernelTable& kernels = kernels::default_kernels());

  /// in (M, K) -> out (M, N), rows of any stride; in and out must not overlap. Leading dimensions count as
  /// rows. Throws Error where shapes disagree. The bits of a row depend on that row alone.
  void forward(TensorView<const float> in, TensorView<float> out, int threads,
               const LinearEpilogue& epilogue = {}) const;

  std::size_t in_features() const noexcept { return weight_.in_features(); }
  std::size_t out_features() const noexcept { return weight_.out_features(); }
  /// Memory that weight and bias occupy.
  std::size_t weight_bytes() const { return weight_.bytes() + bias_.num_elements() * sizeof(float); }

 private:
  kernels::PackedMatrix weight_;
  Tensor<float> bias_;  // (N) or empty
};

}  // namespace vit
