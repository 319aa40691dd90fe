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
  std::vector<std::uint32_t> places;   // (N): the position of each patch
  std::vector<std::size_t> starts;     // (windows + 1): the positions at which windows start, and N
  std::size_t longest = 0;             // patches of the largest window
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

}  // namespace vit::position
