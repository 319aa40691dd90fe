// The code of vit/position/README.md, compiled and run; the last case compares it with the page line by line.
#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/position/position.h"

namespace {

// Lines between the two markers, without indentation and empty lines.
std::vector<std::string> lines_between(const std::string& file, const std::string& begin,
                                       const std::string& end) {
  std::ifstream in(vit::test::source_path(file));
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line == begin || line == end) {
      inside = line == begin;
    } else if (inside && !line.empty()) {
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace

// clang-format off
TEST_CASE("position: the page's rotation by hand runs") {
  // snippet
  using namespace vit::position;

  // Queries of 2 images with a class token and a grid of 3 x 5 patches, 4 heads of 16 channels: (B, L, H, d).
  const vit::GridSize grid{3, 5};
  vit::Tensor<float> queries(vit::Shape{2, 1 + 15, 4, 16});

  const GridCoords coords = grid_coords(grid, {.rule = vit::CoordinateRule::centered});
  const RopeFrequencies of_turns = RopeFrequencies::from_theta(num_axial_frequencies(16), 100.0);
  const RopeFrequencies frequencies = of_turns.scaled(2.0 * std::numbers::pi);
  const RopeTable<float> table = build_axial_table<float>(
      coords, frequencies, {.axis_order = vit::AxisOrder::y_then_x, .pairing = vit::RopePairing::halves});

  rotate(queries, table, 1);                                        // the class token is not rotated
  const std::complex<float> first = table.factor(0, 0);             // patch 0, pair 0
  const std::complex<float> last = table.to_complex().data()[119];  // patch 14, pair 7
  // end of snippet
  CHECK(std::abs(first) == doctest::Approx(1.0));
  CHECK(std::abs(last) == doctest::Approx(1.0));
  CHECK(std::all_of(queries.flat().begin(), queries.flat().end(), [](float value) { return value == 0.0f; }));
}

TEST_CASE("position: the page's model example runs") {
  using namespace vit::internal;
  using namespace vit::position;
  // snippet
  vit::PositionConfig config;  // rope-vit with an added table
  config.rope = vit::RopeKind::axial;
  config.added = vit::AddedTable::patches;
  config.added_grid = {14, 14};
  const vit::Tensor<float> table_of_file(vit::Shape{196, 384});

  const Position position(config, {.embed_dim = 384, .depth = 12, .num_heads = 6, .head_dim = 64},
                          {.added_table = table_of_file});
  const PositionContext context = position.build_context({10, 20});  // once per grid, then only read
  const vit::TensorView<const float> rows = context.patch_rows();    // (200, 384), resampled
  const RopeFactors factors = context.factors(0);                    // cos, sin (200, 32), for block 0
  // end of snippet
  CHECK(rows.shape() == vit::Shape{200, 384});
  CHECK(factors.num_patches == 200);
  CHECK(factors.pairs == 32);
}
// clang-format on

TEST_CASE("position: the page shows the code that runs") {
  const auto page = lines_between("vit/position/README.md", "```cpp", "```");
  const auto code =
      lines_between("tests/position/readme_snippet_tests.cpp", "// snippet", "// end of snippet");
  CHECK(page.size() > 10);
  CHECK(page == code);
}
