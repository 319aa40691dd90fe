// The nearest row of a large fixed set for each of many rows, by products of blocks: exact, and with the same
// bits for any number of threads. Letters: m rows of the set, P rows that ask, C features.
#pragma once

#include <cstddef>
#include <span>

#include "vit/base/tensor.h"
#include "vit/kernels/pack.h"

namespace vit::internal {

/// The row of a set with the largest product.
struct NearestRow {
  std::size_t row = 0;
  float product = 0.0f;
};

/// Rows [begin, end) of a set.
struct RowRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class NearestRows {
 public:
  /// Copies `rows` (m, C) into the layout of `kernels`: as much memory again. Throws Error for an empty set.
  NearestRows(TensorView<const float> rows, const kernels::LinearKernels& kernels);

  std::size_t size() const noexcept { return packed_.out_features(); }
  /// The row with the largest product for each of `queries` (P, C) in `out` (P); of equal ones the first.
  /// Rows in `left_out` do not count; one at least must be left. `threads`: 0 = all. Throws Error for other
  /// widths and for a product that is not finite.
  void find(TensorView<const float> queries, std::span<NearestRow> out, RowRange left_out, int threads) const;

 private:
  kernels::PackedMatrix packed_;
};

}  // namespace vit::internal
