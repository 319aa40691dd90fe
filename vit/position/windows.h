// Windows of a grid: tokens that lie in one are neighbors in the sequence, so that attention inside windows
// is attention of short sequences. Letters: N = patches of a grid, w = edge of a window in patches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/position/config.h"

namespace vit::position {

/// The patches of a grid, window by window.
struct WindowOrder {
  std::vector<std::uint32_t> patches;  // (N): the patch, counted row by row, of each place in the sequence
  std::vector<std::uint32_t> places;   // (N): the place of each patch
  std::vector<std::size_t> starts;     // (windows + 1): the places at which windows begin, and N
  std::size_t longest = 0;             // patches of the largest window
};

/// The grid cut from its upper left corner into windows of w x w patches, taken row by row, as are the
/// patches of each; those at the right and lower edges are smaller. Nothing is padded. Throws Error if w is
/// zero or the grid has a side of zero.
WindowOrder order_by_windows(GridSize grid, std::size_t window);

}  // namespace vit::position
