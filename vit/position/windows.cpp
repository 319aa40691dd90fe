#include "vit/position/windows.h"

#include <algorithm>
#include <limits>

#include "vit/base/check.h"
#include "vit/position/coordinates.h"

namespace vit::position {

namespace {

/// Windows of `window` rows and columns.
WindowOrder order_by(GridSize grid, GridSize window) {
  const std::size_t count = num_patches(grid);
  VIT_CHECK(window.rows > 0 && window.columns > 0 && count <= std::numeric_limits<std::uint32_t>::max(),
            "order_by_windows", "windows of ", to_string(window), " patches on a grid of ", to_string(grid));
  WindowOrder out;
  out.patches.reserve(count);
  out.places.resize(count);
  out.starts.push_back(0);
  for (std::size_t top = 0; top < grid.rows; top += window.rows) {
    for (std::size_t left = 0; left < grid.columns; left += window.columns) {
      const std::size_t bottom = std::min(grid.rows, top + window.rows);
      const std::size_t right = std::min(grid.columns, left + window.columns);
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

}  // namespace

WindowOrder order_by_windows(GridSize grid, std::size_t window) {
  return order_by(grid, {window, window});
}

WindowOrder order_by_window_count(GridSize grid, std::size_t per_side, bool with_tokens) {
  VIT_CHECK(per_side != 0 && grid.rows % per_side == 0 && grid.columns % per_side == 0,
            (Where{"order_by_window_count", ErrorKind::argument}), "a grid of ", to_string(grid),
            " patches cannot be divided into ", per_side, " x ", per_side, " windows");
  VIT_CHECK(!with_tokens || grid.rows == grid.columns, (Where{"order_by_window_count", ErrorKind::argument}),
            "a grid of ", to_string(grid), " patches; windows with tokens of their own are those of squares");
  WindowOrder out = order_by(grid, {grid.rows / per_side, grid.columns / per_side});
  if (!with_tokens) return out;
  const std::size_t of_window = out.longest;
  for (std::size_t window = 0; window + 1 < out.starts.size(); ++window) {
    out.starts[window] += window;
    out.token_places.push_back(static_cast<std::uint32_t>(out.starts[window]));
  }
  out.starts.back() += out.starts.size() - 1;
  for (const std::uint32_t place : out.places)
    out.token_places.push_back(place + 1 + static_cast<std::uint32_t>(place / of_window));
  return out;
}

}  // namespace vit::position
