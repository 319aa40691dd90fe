// Windows of a grid: tokens of a window are contiguous in the sequence, so that window attention
// is attention over short sequences. Letters: N = patches of a grid, w = edge of a window in patches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vit/position/config.h"

namespace vit::position {

/// The patches of a grid, window by window.
struct WindowOrder {
  std::vector<std::uint32_t> patches;  // (N): the raster index of the patch at each position in the sequence
  std::vector<std::uint32_t> places;   // (N): the position of each patch among them
  std::vector<std::size_t> starts;     // (windows + 1): the tokens at which windows start, and their number
  std::size_t longest = 0;             // patches of the largest window
  /// Where windows begin with a token of their own, (windows + N): the position of each of those, then of
  /// each patch, among all tokens.
  std::vector<std::uint32_t> token_places{};

  bool has_window_tokens() const noexcept { return !token_places.empty(); }
};

/// The patches of one image or clip as tokens.
struct PatchSequence {
  GridSize grid;                         // of an image, or of each step of a clip
  std::size_t num_steps = 1;             // in time; patches are counted step by step
  std::optional<WindowOrder> windows{};  // none: patches in raster order
};

/// The grid divided from its upper left corner into windows of w x w patches in raster order, as are the
/// patches of each; those at the right and lower edges are smaller. Nothing is padded. Throws Error if w is
/// zero or the grid has a side of zero.
WindowOrder order_by_windows(GridSize grid, std::size_t window);
/// The same of `per_side` x `per_side` windows of equal size; `with_tokens`: each begins with a token. Throws
/// Error if the grid cannot be divided so, or is not square though windows have tokens.
WindowOrder order_by_window_count(GridSize grid, std::size_t per_side, bool with_tokens);

}  // namespace vit::position
