// LayerNorm and RMSNorm over the channels of every row.
#pragma once

#include <span>

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {

/// RMSNorm if it has no beta.
class LayerNorm {
 public:
  /// gamma and beta (C) are copied; without a beta it is RMSNorm. Throws Error if gamma is empty or beta has
  /// another length.
  LayerNorm(std::span<const float> gamma, std::span<const float> beta, float eps,
            const kernels::KernelTable& kernels = kernels::default_kernels());

  /// in (M, C) -> out (M, C), out may be in. Throws Error if shapes disagree.
  void forward(TensorView<const float> in, TensorView<float> out, int threads) const;
  /// Rows [first, first + count) of in (M, C) -> those of out (M, C), in the calling thread.
  void forward_rows(TensorView<const float> in, TensorView<float> out, std::size_t first,
                    std::size_t count) const;

  std::size_t num_features() const { return gamma_.num_elements(); }

 private:
  void check(const TensorView<const float>& in, const TensorView<float>& out) const;

  Tensor<float> gamma_;  // (C)
  Tensor<float> beta_;   // (C), or empty
  float eps_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
