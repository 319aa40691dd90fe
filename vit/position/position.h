// The position encodings of a model, chosen once at load: rows to add, rotary factors, both or
// neither. A grid of patches turns it into a PositionContext, which the blocks only read.
// Letters: p = prefix rows of the learned table, N = patches, C = embed_dim, H = num_heads, d = head_dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/rope.h"
#include "vit/position/windows.h"

namespace vit::internal {

struct PositionShape {
  std::size_t embed_dim = 0;
  std::size_t depth = 0;
  std::size_t num_heads = 0;
  std::size_t head_dim = 0;
  std::size_t num_prefix = 0;  // tokens before the patches
  std::size_t window = 0;      // edge of the windows in which tokens attend, in patches; 0 = none
  std::span<const std::size_t> global_blocks{};  // blocks without windows nevertheless
  GridSize trained_grid{};                       // used if config.rope_scaling is set
};

/// The stored position tensors of a file; views of memory owned elsewhere, empty if the model has none.
struct PositionWeights {
  TensorView<const float> added_table{};        // (p + N, C) for added_grid, or (2, L, C)
  TensorView<const float> between_tables{};     // (depth - 1, p + N, C), of all tokens
  TensorView<const float> mixed_frequencies{};  // (2, depth, H, d / 2), x first
  std::span<const float> periods{};             // (d / 4), 1 / frequency before angle_scale
  std::span<const float> class_angles{};        // (d / 2), of the class token
};

/// All position data that a forward pass of one grid needs. Immutable; safe to share between
/// threads. Views and factors live as long as the context does.
class PositionContext {
 public:
  GridSize grid() const noexcept { return grid_; }
  /// Steps in time; N counts the patches of all, step by step.
  std::size_t num_steps() const noexcept { return num_steps_; }

  /// Rows to add to the leading prefix tokens, (p, C); empty if none is added.
  TensorView<const float> prefix_rows() const noexcept { return prefix_rows_.view(); }
  /// Rows to add to the patches, (N, C); empty if none is added.
  TensorView<const float> patch_rows() const noexcept { return patch_rows_.view(); }

  /// Rows to add to all tokens (T, C) that leave block `layer`; empty where none are added.
  TensorView<const float> rows_after(std::size_t layer) const noexcept {
    return layer < between_rows_.size() ? between_rows_[layer].view() : TensorView<const float>();
  }
  /// Bytes of rows between blocks, which are large.
  std::size_t between_bytes() const noexcept {
    return between_rows_.empty()
               ? 0
               : between_rows_.size() * between_rows_.front().num_elements() * sizeof(float);
  }

  /// The order of the patches in the sequence; null where they are taken row by row. Rows and factors are in
  /// this order.
  const position::WindowOrder* windows() const noexcept { return windows_ ? &*windows_ : nullptr; }

  /// Whether the factors include the prefix tokens.
  bool turns_prefix() const noexcept { return turns_prefix_; }
  bool has_rope() const noexcept { return !tables_.empty(); }
  /// Factors for q and k of the patches in block `layer`, preceded by those of the prefix if its class
  /// token is rotated: then there is one per token. `cos` is null if nothing is rotated. Throws
  /// Error if a model with factors per layer has no such layer.
  position::RopeFactors factors(std::size_t layer) const;
  /// Factor on the logits of attention (rope.h).
  double logit_factor() const noexcept { return logit_factor_; }

 private:
  friend class Position;
  GridSize grid_;
  std::size_t num_steps_ = 1;
  Tensor<float> prefix_rows_;
  Tensor<float> patch_rows_;
  std::vector<Tensor<float>> between_rows_;  // (T, C) of each block but the last, or none
  std::optional<position::WindowOrder> windows_;
  /// None, one for all layers, one per layer, or one of the whole grid and one of windows.
  std::vector<position::RopeTable<float>> tables_;
  std::vector<std::uint8_t> table_of_block_;  // of whole grid and windows, else empty
  bool turns_prefix_ = false;
  double logit_factor_ = 1.0;
};

/// The position encodings of a model. Immutable; safe to share between threads.
class Position {
 public:
  /// No encoding at all.
  Position() = default;
  /// Copies the weights it needs. Throws Error naming the shapes found and expected if the weights
  /// do not match the config, or are given although the config does not use them.
  Position(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights);

  /// Rows and factors for a grid, of steps in time where positions have such (RopeKind::volume). Throws Error
  /// if a side of the grid is zero, and for several steps of other positions.
  PositionContext build_context(GridSize grid, std::size_t num_steps = 1) const;

  /// Prefix tokens that get a row of the learned table: p.
  std::size_t num_prefix_rows() const noexcept { return num_prefix_rows_; }

 private:
  void load_table(TensorView<const float> table, std::size_t embed_dim);
  void add_rows(PositionContext& context) const;
  void load_frequencies(const PositionShape& shape, const PositionWeights& weights);
  void add_rope_tables(PositionContext& context) const;

  PositionConfig config_;
  GridSize trained_grid_;
  std::size_t num_prefix_ = 0;
  std::size_t window_ = 0;
  std::vector<std::uint8_t> in_windows_;  // of each block: whether coordinates count in windows; or empty
  std::size_t head_dim_ = 0;              // of volume
  std::size_t num_prefix_rows_ = 0;
  Tensor<float> table_;                                   // (p + N, C) or (2, L, C)
  std::vector<Tensor<float>> between_tables_;             // (p + N, C) of each block but the last, or none
  std::optional<position::RopeFrequencies> frequencies_;  // of axial: of the first axis
  std::optional<position::RopeFrequencies> second_axis_;  // of the second, if it has its own
  std::vector<double> class_angles_;                      // (d / 2), or empty
  std::optional<position::MixedFrequencies> mixed_;       // of mixed
};

/// Safe to use from several threads at once.
class PositionCache {
 public:
  explicit PositionCache(Position position) : position_(std::move(position)) {}

  /// The positions of `grid`, cached while it is among the most recently used grids. Throws Error if a side
  /// of the grid is zero.
  std::shared_ptr<const PositionContext> for_grid(GridSize grid, std::size_t num_steps = 1) const;

 private:
  Position position_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const PositionContext>> contexts_;  // most recently used first
};

}  // namespace vit::internal
