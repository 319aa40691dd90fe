// PackedMatrix: a weight reordered once at load into the panels of its kernels.
#pragma once

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// Copies, converts and reorders `weight` (N, K), in parallel. The source may be freed afterwards;
  /// `kernels` must outlive this. Throws Error if the weight is empty, not of rank 2, or contains numbers
  /// that the kernels cannot represent.
  PackedMatrix(TensorView<const float> weight, const LinearKernels& kernels);

  std::size_t out_features() const noexcept { return out_features_; }
  std::size_t in_features() const noexcept { return in_features_; }
  /// The kernels that packed this matrix; only they can read it.
  const LinearKernels& kernels() const noexcept { return *kernels_; }

  std::size_t bytes() const { return panels_.num_elements(); }
  const std::byte* data() const noexcept { return panels_.data(); }

 private:
  std::size_t out_features_ = 0;
  std::size_t in_features_ = 0;
  const LinearKernels* kernels_ = nullptr;
  Tensor<std::byte> panels_;
};

}  // namespace vit::internal::kernels
