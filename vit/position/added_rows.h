// Position encodings that are added to the tokens: the learned tables of a model, brought to the grid of an
// image. Letters: p = prefix rows of the table, N = patches, C = embed_dim, T = tokens.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/inputs.h"
#include "vit/position/windows.h"

namespace vit::internal {

/// Rows to add to the tokens of one grid, patches in the order of the sequence.
struct RowsOfGrid {
  Tensor<float> prefix;                // (p, C), to the leading tokens; empty if none is added
  Tensor<float> patches;               // (N, C); empty if none is added
  std::vector<Tensor<float>> between;  // (T, C), to all tokens after each block but the last; or none

  std::size_t bytes() const {
    const std::size_t of_one = between.empty() ? 0 : between.front().flat().size_bytes();
    return prefix.flat().size_bytes() + patches.flat().size_bytes() + between.size() * of_one;
  }
};

/// The tables of a model. Immutable; safe to share between threads.
class AddedRows {
 public:
  /// Nothing is added.
  AddedRows() = default;
  /// Copies the tables. Throws Error naming the shapes found and expected if they do not match the config, or
  /// are given although the config does not use them.
  AddedRows(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights);

  /// Throws Error for a grid that the tables of columns and rows do not reach.
  static void check_grid(const PositionConfig& config, GridSize grid);
  /// The rows for the patches of a sequence. Throws Error if a side of the grid is zero.
  RowsOfGrid of_grid(const position::PatchSequence& sequence) const;

  bool empty() const noexcept { return table_.empty(); }
  /// Whether there are rows for each step in time.
  bool has_time() const noexcept { return config_.added_steps != 0; }
  std::size_t num_prefix_rows() const noexcept { return num_prefix_rows_; }  // p

 private:
  void load_table(TensorView<const float> table, std::size_t embed_dim);
  void load_between(TensorView<const float> tables, const PositionShape& shape);
  Tensor<float> resampled(TensorView<const float> table, GridSize grid) const;
  Tensor<float> resampled_axes(GridSize grid) const;
  RowsOfGrid rows_of(GridSize grid) const;
  RowsOfGrid rows_of_steps(const position::PatchSequence& sequence) const;

  PositionConfig config_;
  std::size_t num_prefix_rows_ = 0;
  Tensor<float> table_;                 // (p + N, C) or (2, L, C); (p + steps N, C) with steps in time
  std::vector<Tensor<float>> between_;  // (p + N, C) of each block but the last, or none
};

}  // namespace vit::internal
