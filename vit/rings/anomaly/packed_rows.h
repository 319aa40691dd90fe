// Rows in the layout of a matrix product, in an order of their own.
#pragma once

#include <cstdint>
#include <span>

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {

class PackedRows {
 public:
  PackedRows() = default;
  /// Copies the rows (m, C) in the order given, or as they are if it is empty. `kernels` takes float32 as it
  /// is, and must outlive this.
  PackedRows(TensorView<const float> rows, std::span<const std::uint32_t> order,
             const kernels::LinearKernels& kernels, int threads = 0);

  std::size_t size() const noexcept { return size_; }
  std::size_t num_columns() const noexcept { return columns_; }
  const kernels::LinearKernels& kernels() const noexcept { return *kernels_; }
  /// Products of `queries` (n, C) with the rows [begin, end), begin a multiple of 32: out[i stride + j -
  /// begin] is that of query i and row j. Its bits depend only on those two.
  void multiply(TensorView<const float> queries, std::size_t begin, std::size_t end, float* out,
                std::size_t stride) const;

 private:
  const kernels::LinearKernels* kernels_ = nullptr;
  std::size_t size_ = 0;
  std::size_t columns_ = 0;
  Tensor<std::byte> panels_;
};

/// The largest of `count` numbers; anything if one is NaN.
float largest_of(const float* numbers, std::size_t count);

}  // namespace vit::internal
