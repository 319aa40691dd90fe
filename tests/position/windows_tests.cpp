#include "vit/position/windows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/errors.h"

namespace vit::position {
namespace {

/// Window by window, each row by row: as the definition says, patch by patch.
std::vector<std::uint32_t> expected_patches(GridSize grid, std::size_t window) {
  std::vector<std::uint32_t> patches(grid.rows * grid.columns);
  for (std::size_t i = 0; i < patches.size(); ++i) patches[i] = static_cast<std::uint32_t>(i);
  std::ranges::stable_sort(patches, {}, [&](std::uint32_t patch) {
    const std::size_t row = patch / grid.columns, column = patch % grid.columns;
    return (row / window) * 1000 + column / window;
  });
  return patches;
}

}  // namespace

TEST_CASE("position: windows are cut from the upper left, smaller at the other edges, and nothing is lost") {
  for (const GridSize grid :
       {GridSize{1, 1}, GridSize{8, 8}, GridSize{5, 9}, GridSize{9, 5}, GridSize{4, 13}}) {
    for (const std::size_t window : {1u, 2u, 4u, 8u, 16u}) {
      CAPTURE(grid.rows);
      CAPTURE(grid.columns);
      CAPTURE(window);
      const WindowOrder order = order_by_windows(grid, window);
      CHECK(order.patches == expected_patches(grid, window));
      for (std::size_t place = 0; place < order.patches.size(); ++place)
        CHECK(order.places[order.patches[place]] == place);
      CHECK(order.starts.front() == 0);
      CHECK(order.starts.back() == grid.rows * grid.columns);
      const std::size_t down = (grid.rows + window - 1) / window,
                        across = (grid.columns + window - 1) / window;
      CHECK(order.starts.size() == down * across + 1);
      std::size_t longest = 0;
      for (std::size_t i = 0; i + 1 < order.starts.size(); ++i) {
        CHECK(order.starts[i] < order.starts[i + 1]);
        longest = std::max(longest, order.starts[i + 1] - order.starts[i]);
      }
      CHECK(order.longest == longest);
    }
  }
}

TEST_CASE("position: windows of no patches are refused") {
  CHECK(test::contains(test::message_of([] { order_by_windows({4, 4}, 0); }), "windows of 0"));
  CHECK(!test::message_of([] { order_by_windows({0, 4}, 2); }).empty());
}

}  // namespace vit::position
