#include "vit/position/windows.h"

#include <algorithm>
#include <limits>

#include "vit/base/check.h"
#include "vit/position/coordinates.h"

namespace vit::position {

WindowOrder order_by_windows(GridSize grid, std::size_t window) {
  const std::size_t count = num_patches(grid);
  VIT_CHECK(window > 0 && count <= std::numeric_limits<std::uint32_t>::max(), "order_by_windows",
            "windows of ", window, " patches on a grid of ", to_string(grid));
  WindowOrder out;
  out.patches.reserve(count);
  out.places.resize(count);
  out.starts.push_back(0);
  for (std::size_t top = 0; top < grid.rows; top += window) {
    for (std::size_t left = 0; left < grid.columns; left += window) {
      const std::size_t bottom = std::min(grid.rows, top + window);
      const std::size_t right = std::min(grid.columns, left + window);
      for (std::size_t row = top; row < bottom; ++row) {
        for (std::size_t column = left; column < right; ++column) {
          const std::size_t patch = row * grid.columns + column;
          out.places[patch] = static_cast<std::uint32_t>(out.patches.size());
          out.patches.push_back(static_cast<std::uint32_t>(patch));
        }
      }
      out.longest = std::max(out.longest, out.patches.size() - out.starts.back());
      out.starts.push_back(out.patches.size());
    }
  }
  return out;
}

}  // namespace vit::position
