// PackedMatrix, PackedBf16Matrix and PackedInt8Matrix: a weight reordered once at load into the panels that
// one kernel table reads.
#pragma once

#include "vit/base/checked.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

/// What every packed weight knows of itself.
class PackedWeight {
 public:
  std::size_t out_features() const noexcept { return out_features_; }
  std::size_t in_features() const noexcept { return in_features_; }
  /// The table that packed this matrix and the only one that can read it.
  const KernelTable& table() const noexcept { return *table_; }

 protected:
  PackedWeight() = default;
  /// Throws Error, as `where`, for a weight that is empty or not of rank 2.
  PackedWeight(const TensorView<const float>& weight, const KernelTable& table, const char* where);

  /// Output columns, rounded up to whole panels.
  std::size_t padded_columns() const { return round_up(out_features_, table_->panel_columns); }

 private:
  std::size_t out_features_ = 0;
  std::size_t in_features_ = 0;
  const KernelTable* table_ = nullptr;
};

class PackedMatrix : public PackedWeight {
 public:
  PackedMatrix() = default;
  /// Copies and reorders `weight` (N, K), in parallel. The source may go afterwards; `table` must outlive
  /// this. Throws Error where weight is empty or not of rank 2.
  PackedMatrix(TensorView<const float> weight, const KernelTable& table);

  std::size_t bytes() const { return panels_.num_elements() * sizeof(float); }
  const float* data() const noexcept { return panels_.data(); }

 private:
  Tensor<float> panels_;
};

/// The same with numbers rounded to bfloat16: bf16.h.
class PackedBf16Matrix : public PackedWeight {
 public:
  PackedBf16Matrix() = default;
  PackedBf16Matrix(TensorView<const float> weight, const KernelTable& table);

  std::size_t bytes() const { return panels_.num_elements() * sizeof(float); }
  const float* data() const noexcept { return panels_.data(); }

 private:
  Tensor<float> panels_;  // lanes
};

/// The same with whole numbers and a scale for every group of a row: int8.h.
class PackedInt8Matrix : public PackedWeight {
 public:
  PackedInt8Matrix() = default;
  /// Quantises `weight` (N, K) in parallel: each group of a row by its largest magnitude / 127 or what the
  /// table's pair_largest asks for, halves to even. Throws Error where weight is empty, not of rank 2, or not
  /// finite.
  PackedInt8Matrix(TensorView<const float> weight, const KernelTable& table);

  std::size_t bytes() const { return panels_.num_elements(); }
  const std::byte* data() const noexcept { return panels_.data(); }

 private:
  Tensor<std::byte> panels_;
};

}  // namespace vit::internal::kernels
