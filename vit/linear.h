// A linear layer on the kernels of the models, in float32. Letters: M rows, K input features, N output
// features.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Tensors of a linear layer.
struct LinearTensors {
  TensorView<const float> weight{};  // (out, in)
  std::span<const float> bias{};     // (out), or empty
};

/// What follows the product: out = residual + scale * activation(x W^T + b). An empty member omits its term.
struct LinearOptions {
  Activation activation = Activation::none;  // of the product and the bias
  std::span<const float> scale{};            // (N): layer scale
  TensorView<const float> residual{};        // (M, N), may be the output; none without data
  int threads = 0;                           // 0 = all; the result does not depend on it
};

/// y = x W^T + b. Immutable; safe to share between threads.
class VIT_API Linear {
 public:
  /// weight (N, K), or (N, ...) whose other dimensions are K features: the weight of a patch embedding (C, K,
  /// P, P). bias (N) or empty. Both are copied, in the layout of the kernels. Throws Error if the shapes do
  /// not match.
  explicit Linear(TensorView<const float> weight, std::span<const float> bias = {});
  ~Linear();
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;

  std::size_t in_features() const noexcept;   // K
  std::size_t out_features() const noexcept;  // N

  /// x (M, K) -> out (M, N); leading dimensions are rows, and rows may have any stride. The bits of a row
  /// depend only on that row. Allocates nothing. Throws Error if the shapes do not match, or `out` shares
  /// memory with x; it may be the residual.
  void forward(TensorView<const float> x, TensorView<float> out, const LinearOptions& options = {}) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
