// Relative positions of a model: a bias of attention scores that depends on the distance of query and key in
// rows and columns. A step of its own next to rotations: tables are brought to the grid, and every token gets
// the place at which kernels look the bias up, so that nothing of the size of queries times keys is stored.
// Letters: H = heads, d = channels of a head, U, V = rows and columns of a grid, T = tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/inputs.h"
#include "vit/position/windows.h"

namespace vit::position {

/// Floats after tables of both axes that kernels may read, and do not use.
inline constexpr std::size_t kAxesPadding = 64;

/// The bias of one block, as kernels::ScoreBias takes it. Null pointers: none.
struct RelativeTerms {
  const float* table = nullptr;                // (H, head_stride)
  std::size_t head_stride = 0;                 // entries of a head
  const std::int32_t* query_places = nullptr;  // (T)
  const std::int32_t* key_places = nullptr;    // (T)

  const float* axes = nullptr;  // (d, axes_stride), for all heads
  std::size_t axes_stride = 0;
  GridSize grid{};                         // U, V: the image or a window
  const std::uint16_t* rows = nullptr;     // (T), or of the tokens of all windows
  const std::uint16_t* columns = nullptr;  // alike
};

/// Rows and columns of tokens.
struct TokenPlaces {
  std::vector<std::uint16_t> rows, columns;
};

/// The tokens of each window, in the window, one window of w x w after the other: those of the grid, then
/// those that complete it.
TokenPlaces places_in_windows(GridSize grid, std::size_t window);

/// The table of distances (entries, H) of grid `from`, (2 U - 1) (2 V - 1) rows, for grid `to`. Source of
/// geometric: microsoft/unilm, beit, run_class_finetuning.py, with linear interpolation as in timm.
Tensor<float> resample_distances(TensorView<const float> table, GridSize from, GridSize to,
                                 RelativeResampling resampling);

/// The numbers (heads, distances) that layers compute from sign(x) ln(1 + |x|) of the distances of a grid
/// in rows and columns: fc2(relu(fc1 x)); fc1 (hidden, 2), fc2 (heads, hidden). Source: timm, RelPosMlp.
Tensor<float> compute_distances(const internal::RelativeLayers& layers, GridSize grid);

}  // namespace vit::position

namespace vit::internal {

/// The bias of the blocks for one grid.
struct RelativeOfGrid {
  GridSize grid, window;
  std::vector<Tensor<float>> tables{};       // (H, entries) or (d, stride) of each block, or one of all
  std::vector<std::int32_t> query_places{};  // (T), of tables
  std::vector<std::int32_t> key_places{};
  position::TokenPlaces tokens{};  // of axes: of the image
  position::TokenPlaces window_tokens{};
  std::vector<std::uint8_t> in_windows{};  // of each block; or empty
  std::size_t window_keys = 0;             // w w, if windows are completed

  /// Of block `layer`.
  position::RelativeTerms of_block(std::size_t layer) const;
  std::size_t bytes() const;
  /// Keys of a sequence in block `layer` if its windows are completed, else 0.
  std::size_t keys_of(std::size_t layer) const noexcept {
    return layer < in_windows.size() && in_windows[layer] != 0 ? window_keys : 0;
  }
};

/// Immutable; safe to share between threads.
class RelativeEncoding {
 public:
  /// No bias.
  RelativeEncoding() = default;
  /// Shares the weights. Throws Error naming what was found and expected if they do not match the config.
  RelativeEncoding(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights);

  /// The bias for the patches of a sequence. Throws Error if a side of the grid is zero.
  RelativeOfGrid of_grid(const position::PatchSequence& sequence) const;
  /// Whether there is no bias.
  bool empty() const noexcept { return !config_; }

 private:
  Tensor<float> table_of(std::size_t layer, GridSize grid) const;
  Tensor<float> axes_of(std::size_t layer, GridSize grid) const;

  std::optional<RelativeConfig> config_;
  std::size_t num_heads_ = 0, head_dim_ = 0, num_prefix_ = 0, window_ = 0;
  std::vector<std::uint8_t> in_windows_;
  bool pads_ = false;
  std::shared_ptr<const StoredRelative> stored_;
};

}  // namespace vit::internal
