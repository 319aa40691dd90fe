// Relative positions as a bias of attention: places of tables, tables of axes, completed windows.
#include "vit/position/relative_encoding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/position.h"

namespace vit::internal {
namespace {

Tensor<float> numbers(Shape shape, std::uint64_t seed) {
  test::Rng rng(seed);
  Tensor<float> out(shape);
  const std::vector<float> values = rng.numbers(out.num_elements(), -1.0f, 1.0f);
  std::ranges::copy(values, out.data());
  return out;
}

PositionConfig config_of(RelativeKind kind, GridSize grid, RelativeScope scope = RelativeScope::blocks) {
  PositionConfig config;
  config.relative = RelativeConfig{.kind = kind, .grid = grid, .scope = scope};
  return config;
}

}  // namespace

TEST_CASE("position: places of a table give each pair of tokens the number of its distance") {
  constexpr std::size_t kHeads = 2, kDepth = 2;
  for (const GridSize grid : {GridSize{1, 1}, GridSize{3, 5}, GridSize{4, 2}}) {
    for (const std::size_t prefix : {0u, 1u}) {
      const std::size_t distances = (2 * grid.rows - 1) * (2 * grid.columns - 1);
      auto stored = std::make_shared<StoredRelative>();
      const Shape shape{distances + 3 * prefix, kHeads};
      for (std::size_t i = 0; i < kDepth; ++i) stored->blocks.push_back({.table = numbers(shape, i)});
      stored->shared.table = numbers(shape, 9);
      const Position position(
          config_of(RelativeKind::table, grid, RelativeScope::both),
          {.embed_dim = 8, .depth = kDepth, .num_heads = kHeads, .head_dim = 4, .num_prefix = prefix},
          {.relative = stored});
      const PositionContext context = position.build_context(grid);
      for (std::size_t layer = 0; layer < kDepth; ++layer) {
        const position::RelativeTerms terms = context.relative(layer);
        const std::size_t tokens = prefix + grid.rows * grid.columns;
        for (std::size_t query = 0; query < tokens; ++query) {
          for (std::size_t key = 0; key < tokens; ++key) {
            std::size_t row = distances + (query < prefix ? (key < prefix ? 2 : 0) : 1);
            if (query >= prefix && key >= prefix) {
              const std::size_t q = query - prefix, k = key - prefix;
              row = (q / grid.columns + grid.rows - 1 - k / grid.columns) * (2 * grid.columns - 1) +
                    q % grid.columns + grid.columns - 1 - k % grid.columns;
            }
            for (std::size_t head = 0; head < kHeads; ++head) {
              const auto place = terms.query_places[query] - terms.key_places[key];
              CHECK(terms.table[head * terms.head_stride + static_cast<std::size_t>(place)] ==
                    stored->shared.table.view().row(row)[head] +
                        stored->blocks[layer].table.view().row(row)[head]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("position: a table keeps its small distances when it is resampled geometrically") {
  const GridSize from{4, 4}, to{7, 5};
  const Tensor<float> table = numbers(Shape{49, 1}, 3);
  const Tensor<float> out = position::resample_distances(table, from, to, RelativeResampling::geometric);
  CHECK(out.dim(0) == 13 * 9);
  const auto at = [](const Tensor<float>& t, std::size_t columns, std::size_t row, std::size_t column) {
    return t.data()[row * columns + column];
  };
  // distances 0 and 1 are the first two of both grids
  for (const int y : {-1, 0, 1}) {
    for (const int x : {-1, 0, 1}) {
      CHECK(at(out, 9, static_cast<std::size_t>(6 + y), static_cast<std::size_t>(4 + x)) ==
            doctest::Approx(at(table, 7, static_cast<std::size_t>(3 + y), static_cast<std::size_t>(3 + x))));
    }
  }
  // 1 + q + q^2 is 4 for columns; for rows q = 1.5, the largest, and what lies beyond 4.75 gets its number
  CHECK(at(out, 9, 0, 0) == doctest::Approx(at(table, 7, 0, 0)).epsilon(1e-4));
  const double t = 1.0 / 1.5;  // 2 is between 1 and 1 + q
  CHECK(at(out, 9, 8, 4) == doctest::Approx((1 - t) * static_cast<double>(at(table, 7, 4, 3)) +
                                            t * static_cast<double>(at(table, 7, 5, 3)))
                                .epsilon(1e-4));
  CHECK(at(out, 9, 12, 4) == doctest::Approx(at(table, 7, 6, 3)));
  CHECK(position::resample_distances(table, from, from, RelativeResampling::geometric).flat()[7] ==
        table.flat()[7]);
}

TEST_CASE("position: layers compute the number of a distance from its logarithm") {
  RelativeLayers layers{.fc1 = numbers(Shape{3, 2}, 1),
                        .fc1_bias = numbers(Shape{3}, 2),
                        .fc2 = numbers(Shape{2, 3}, 3),
                        .fc2_bias = numbers(Shape{2}, 4)};
  const GridSize grid{3, 2};
  const Tensor<float> out = position::compute_distances(layers, grid);
  CHECK(out.shape() == Shape{15, 2});
  for (std::size_t i = 0; i < 15; ++i) {
    const double dy = static_cast<double>(i / 3) - 2.0, dx = static_cast<double>(i % 3) - 1.0;
    const double y = std::copysign(std::log1p(std::abs(dy)), dy),
                 x = std::copysign(std::log1p(std::abs(dx)), dx);
    for (std::size_t h = 0; h < 2; ++h) {
      double sum = static_cast<double>(layers.fc2_bias.data()[h]);
      for (std::size_t k = 0; k < 3; ++k) {
        const float* const w = layers.fc1.view().row(k);
        const double hidden = static_cast<double>(w[0]) * y + static_cast<double>(w[1]) * x +
                              static_cast<double>(layers.fc1_bias.data()[k]);
        sum += static_cast<double>(layers.fc2.view().row(h)[k]) * std::max(hidden, 0.0);
      }
      CHECK(out.view().row(i)[h] == doctest::Approx(sum).epsilon(1e-6));
    }
  }
}

TEST_CASE("position: tables of axes are those of the image or of its windows, which zeros complete") {
  const GridSize grid{5, 7};
  constexpr std::size_t kWindow = 3, kHead = 4;
  auto stored = std::make_shared<StoredRelative>();
  stored->blocks.push_back({.rows = numbers(Shape{2 * kWindow - 1, kHead}, 1),
                            .columns = numbers(Shape{2 * kWindow - 1, kHead}, 2)});
  stored->blocks.push_back({.rows = numbers(Shape{9, kHead}, 3), .columns = numbers(Shape{13, kHead}, 4)});
  const std::vector<std::size_t> global{1};
  const Position position(config_of(RelativeKind::axes, grid),
                          {.embed_dim = 8,
                           .depth = 2,
                           .num_heads = 2,
                           .head_dim = kHead,
                           .window = kWindow,
                           .completes_windows = true,
                           .global_blocks = global},
                          {.relative = stored});
  const PositionContext context = position.build_context(grid);
  CHECK(context.window_keys(0) == kWindow * kWindow);
  CHECK(context.window_keys(1) == 0);
  for (const std::size_t layer : {0u, 1u}) {
    const position::RelativeTerms terms = context.relative(layer);
    CHECK(terms.grid == (layer == 0 ? GridSize{kWindow, kWindow} : grid));
    for (std::size_t q = 0; q < terms.grid.rows; ++q) {
      for (std::size_t k = 0; k < terms.grid.rows; ++k) {
        for (std::size_t c = 0; c < kHead; ++c)
          CHECK(terms.axes[c * terms.axes_stride + terms.grid.rows - 1 + k - q] ==
                stored->blocks[layer].rows.view().row(q + terms.grid.rows - 1 - k)[c]);
      }
    }
  }
  // windows of 3 x 3, 3 x 1 and 2 x 3 tokens of the grid come first, in their order in the sequence
  const position::TokenPlaces places = position::places_in_windows(grid, kWindow);
  const position::WindowOrder order = position::order_by_windows(grid, kWindow);
  CHECK(places.rows.size() == 6 * kWindow * kWindow);
  for (std::size_t window = 0; window + 1 < order.starts.size(); ++window) {
    std::vector<int> seen(kWindow * kWindow);
    for (std::size_t i = 0; i < kWindow * kWindow; ++i) {
      const std::size_t at = window * kWindow * kWindow + i;
      ++seen[places.rows[at] * kWindow + places.columns[at]];
      if (i >= order.starts[window + 1] - order.starts[window]) continue;
      const std::size_t patch = order.patches[order.starts[window] + i];
      CHECK(places.rows[at] == patch / grid.columns % kWindow);
      CHECK(places.columns[at] == patch % grid.columns % kWindow);
    }
    for (const int count : seen) CHECK(count == 1);
  }
}

TEST_CASE("position: tables of distances of another size are refused") {
  auto stored = std::make_shared<StoredRelative>();
  stored->shared.table = numbers(Shape{10, 2}, 1);
  const PositionShape shape{.embed_dim = 8, .depth = 1, .num_heads = 2, .head_dim = 4};
  const PositionConfig config = config_of(RelativeKind::table, {2, 2}, RelativeScope::shared);
  CHECK(test::contains(test::message_of([&] { Position(config, shape, {.relative = stored}); }),
                       "expected (9, 2)"));
  CHECK(test::contains(test::message_of([&] { Position(config, shape, {}); }), "there are no tensors"));
}

}  // namespace vit::internal
