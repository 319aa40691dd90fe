// The position encodings of a model, chosen once at load: rows that are added to tokens, factors that rotate
// queries and keys, a bias of attention, several or none. A grid of patches makes a PositionContext of them,
// which the blocks only read. Letters: p = prefix rows of the learned table, N = patches, C = embed_dim, H =
// num_heads, d = head_dim.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "vit/base/tensor.h"
#include "vit/position/added_rows.h"
#include "vit/position/config.h"
#include "vit/position/inputs.h"
#include "vit/position/relative_encoding.h"
#include "vit/position/rope_encoding.h"
#include "vit/position/windows.h"

namespace vit::internal {

/// All position data that a forward pass of one grid needs. Immutable; safe to share between
/// threads. Views and factors live as long as the context does.
class PositionContext {
 public:
  GridSize grid() const noexcept { return sequence_.grid; }
  /// Steps in time; N counts the patches of all, step by step.
  std::size_t num_steps() const noexcept { return sequence_.num_steps; }

  /// Rows to add to the leading prefix tokens, (p, C); empty if none is added.
  TensorView<const float> prefix_rows() const noexcept { return rows_.prefix.view(); }
  /// Rows to add to the patches, (N, C); empty if none is added.
  TensorView<const float> patch_rows() const noexcept { return rows_.patches.view(); }
  /// Rows to add to all tokens (T, C) that leave block `layer`; empty if none are added.
  TensorView<const float> rows_after(std::size_t layer) const noexcept {
    return layer < rows_.between.size() ? rows_.between[layer].view() : TensorView<const float>();
  }
  /// Of all tables: rows between blocks, factors of each block and tables of distances are large.
  std::size_t bytes() const { return rows_.bytes() + rope_.bytes() + relative_.bytes(); }

  /// The order of the patches in the sequence; null if they are taken row by row. Rows and factors are in
  /// this order.
  const position::WindowOrder* windows() const noexcept {
    return sequence_.windows ? &*sequence_.windows : nullptr;
  }

  /// Whether the factors include the prefix tokens.
  bool turns_prefix() const noexcept { return rope_.with_prefix; }
  bool has_rope() const noexcept { return !rope_.tables.empty(); }
  /// Factors for q and k of the patches in block `layer`, preceded by those of the prefix if its class
  /// token is rotated: then there is one per token. `cos` is null if nothing is rotated. Throws
  /// Error if a model with factors per layer has no such layer.
  position::RopeFactors factors(std::size_t layer) const { return rope_.of_block(layer); }
  /// The bias of the scores in block `layer`; null pointers if it has none.
  position::RelativeTerms relative(std::size_t layer) const { return relative_.of_block(layer); }
  /// Keys of each window in block `layer` if windows are completed by tokens of zeros, else 0.
  std::size_t window_keys(std::size_t layer) const noexcept { return relative_.keys_of(layer); }
  /// Factors of the keys of all windows that are completed, window by window, those of patches first; `cos`
  /// is null if nothing is rotated.
  position::RopeFactors window_factors() const {
    return rope_.of_completed ? rope_.of_completed->factors() : position::RopeFactors();
  }
  /// Factor on the logits of attention (rope_scaling.h).
  double logit_factor() const noexcept { return rope_.logit_factor; }

 private:
  friend class Position;
  position::PatchSequence sequence_;
  RowsOfGrid rows_;
  RopeOfGrid rope_;
  RelativeOfGrid relative_;
};

/// The position encodings of a model. Immutable; safe to share between threads.
class Position {
 public:
  /// No encoding at all.
  Position() = default;
  /// Copies the weights it needs. Throws Error naming the shapes found and expected if the weights
  /// do not match the config, or are given although the config does not use them.
  Position(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights)
      : window_(shape.window),
        windows_per_side_(shape.windows_per_side),
        windows_have_tokens_(shape.windows_have_tokens),
        rows_(config, shape, weights),
        rope_(config, shape, weights),
        relative_(config, shape, weights) {}

  /// Rows and factors for a grid, of steps in time if positions have such. Throws Error if a side of the grid
  /// is zero, and for several steps of other positions.
  PositionContext build_context(GridSize grid, std::size_t num_steps = 1) const;

  /// Prefix tokens that get a row of the learned table: p.
  std::size_t num_prefix_rows() const noexcept { return rows_.num_prefix_rows(); }

 private:
  std::size_t window_ = 0, windows_per_side_ = 0;
  bool windows_have_tokens_ = false;
  AddedRows rows_;
  RopeEncoding rope_;
  RelativeEncoding relative_;
};

/// Safe to use from several threads at once.
class PositionCache {
 public:
  explicit PositionCache(Position position) : position_(std::move(position)) {}

  /// The positions of `grid`, cached while it is among the most recently used grids, 8 of them or what fits
  /// 256 MiB. Throws Error if a side
  /// of the grid is zero.
  std::shared_ptr<const PositionContext> for_grid(GridSize grid, std::size_t num_steps = 1) const;

 private:
  Position position_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const PositionContext>> contexts_;  // most recently used first
};

}  // namespace vit::internal
