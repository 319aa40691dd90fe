// The nearest row of a large fixed set for each of many rows: exact, and with the same bits for any number of
// threads. Letters: m rows of the set, P rows that ask, C features.
#pragma once

#include <memory>
#include <span>

#include "vit/rings/anomaly/packed_rows.h"
#include "vit/rings/anomaly/row_groups.h"

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

  bool contains(std::size_t row) const noexcept { return row >= begin && row < end; }
};

class NearestRows {
 public:
  static constexpr std::size_t kWorthGrouping = 4096;  // rows; fewer are all compared

  /// Copies `rows` (m, C) into the layout of `kernels`, as much memory again; from `grouped_from` rows on
  /// they are grouped, for 260 bytes of each. Throws Error for an empty set.
  NearestRows(TensorView<const float> rows, const kernels::LinearKernels& kernels,
              std::size_t grouped_from = kWorthGrouping);

  std::size_t size() const noexcept { return packed_.size(); }
  /// The row with the largest product for each of `queries` (P, C) in `out` (P); of equal ones the first.
  /// Rows in `left_out` do not count; one at least must be left. The same bits whether rows are grouped or
  /// not. `threads`: 0 = all. Throws Error for other widths and for a product that is not finite.
  void find(TensorView<const float> queries, std::span<NearestRow> out, RowRange left_out, int threads) const;

 private:
  std::unique_ptr<const RowGroups> groups_;  // or none
  PackedRows packed_;                        // in the order of the groups
};

}  // namespace vit::internal
