// What a model does about positions, chosen once at load: rows to add, factors to rotate with, both or
// neither. A grid of patches turns it into a PositionContext, which the blocks only read.
// Letters: p = prefix rows of the learned table, N = patches, C = embed_dim, H = num_heads, d = head_dim.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/rope.h"

namespace vit::internal {

struct PositionShape {
  std::size_t embed_dim = 0;
  std::size_t depth = 0;
  std::size_t num_heads = 0;
  std::size_t head_dim = 0;
  GridSize trained_grid{};  // read where config.rope_scaling is set
};

/// What a file stores for positions; views of memory owned elsewhere, empty where the model has none.
struct PositionWeights {
  TensorView<const float> added_table{};        // (p + N, C) for added_grid
  TensorView<const float> mixed_frequencies{};  // (2, depth, H, d / 2), x first
  std::span<const float> periods{};             // (d / 4), 1 / frequency before angle_scale
};

/// Everything about positions that a forward pass of one grid needs. Immutable; safe to share between
/// threads. Views and factors live as long as the context does.
class PositionContext {
 public:
  GridSize grid() const noexcept { return grid_; }

  /// Rows to add to the leading prefix tokens, (p, C); empty where none is added.
  TensorView<const float> prefix_rows() const noexcept { return prefix_rows_.view(); }
  /// Rows to add to the patches, (N, C); empty where none is added.
  TensorView<const float> patch_rows() const noexcept { return patch_rows_.view(); }

  bool has_rope() const noexcept { return !tables_.empty(); }
  /// Factors for q and k of the patches in block `layer`; `cos` is null where nothing is rotated. Throws
  /// Error where a model with factors per layer has no such layer.
  position::RopeFactors factors(std::size_t layer) const;
  /// What the logits of attention are multiplied by (rope.h).
  double logit_factor() const noexcept { return logit_factor_; }

 private:
  friend class Position;
  GridSize grid_;
  Tensor<float> prefix_rows_;
  Tensor<float> patch_rows_;
  std::vector<position::RopeTable<float>> tables_;  // none, one for all layers, or one per layer
  double logit_factor_ = 1.0;
};

/// The position encodings of a model. Immutable; safe to share between threads.
class Position {
 public:
  /// No encoding at all.
  Position() = default;
  /// Copies what it needs of the weights. Throws Error naming the shapes found and expected where the weights
  /// do not fit the config, or are given though the config has no use for them.
  Position(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights);

  /// Rows and factors for a grid. Throws Error if a side of the grid is zero.
  PositionContext build_context(GridSize grid) const;

  /// Prefix tokens that get a row of the learned table: p.
  std::size_t num_prefix_rows() const noexcept { return num_prefix_rows_; }

 private:
  void load_table(TensorView<const float> table, std::size_t embed_dim);
  void load_frequencies(const PositionShape& shape, const PositionWeights& weights);
  void add_rope_tables(PositionContext& context) const;

  PositionConfig config_;
  GridSize trained_grid_;
  std::size_t num_prefix_rows_ = 0;
  Tensor<float> table_;                                   // (p + N, C)
  std::optional<position::RopeFrequencies> frequencies_;  // of axial
  std::optional<position::MixedFrequencies> mixed_;       // of mixed
};

}  // namespace vit::internal
