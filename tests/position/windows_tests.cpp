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

TEST_CASE("position: as many windows on every grid, each with a token in front where they have one") {
  const WindowOrder plain = order_by_window_count({4, 6}, 2, false);
  CHECK(plain.patches[2] == 2u);  // windows of 2 x 3 patches
  CHECK(plain.patches[3] == 6u);
  CHECK(plain.patches[6] == 3u);
  CHECK(plain.starts == std::vector<std::size_t>{0, 6, 12, 18, 24});
  CHECK(!plain.has_window_tokens());

  constexpr std::size_t kSide = 6, kCount = 3, kOfWindow = 4;
  const WindowOrder order = order_by_window_count({kSide, kSide}, kCount, true);
  CHECK(order.patches == order_by_windows({kSide, kSide}, kSide / kCount).patches);
  REQUIRE(order.token_places.size() == kCount * kCount + kSide * kSide);
  std::vector<std::uint32_t> sorted = order.token_places;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) CHECK(sorted[i] == i);
  for (std::size_t window = 0; window < kCount * kCount; ++window) {
    CHECK(order.starts[window] == window * (1 + kOfWindow));
    CHECK(order.token_places[window] == order.starts[window]);
    for (std::size_t i = 0; i < kOfWindow; ++i) {
      const std::uint32_t patch = order.patches[window * kOfWindow + i];
      CHECK(order.token_places[kCount * kCount + patch] == order.starts[window] + 1 + i);
    }
  }
  CHECK(order.starts.back() == order.token_places.size());
  CHECK(test::contains(test::message_of([] {
                         order_by_window_count({6, 8}, 3, false);
                       }),
                       "cannot be divided into 3 x 3 windows"));
  CHECK(test::contains(test::message_of([] { order_by_window_count({4, 8}, 2, true); }), "those of squares"));
}

TEST_CASE("position: windows of no patches are refused") {
  CHECK(test::contains(test::message_of([] { order_by_windows({4, 4}, 0); }), "windows of 0"));
  CHECK(!test::message_of([] { order_by_windows({0, 4}, 2); }).empty());
}

}  // namespace vit::position
