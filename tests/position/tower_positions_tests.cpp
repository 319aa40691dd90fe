// What the vision towers of language models have about positions that others lack.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/position.h"
#include "vit/position/tables.h"

namespace vit::internal {
namespace {

constexpr GridSize kGrid{3, 5};
constexpr std::size_t kHead = 16;

PositionConfig rope_config() {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.axis_order = AxisOrder::y_then_x;
  config.pairing = RopePairing::halves;
  config.theta = 10000.0;
  return config;
}

PositionShape shape_of(std::size_t num_prefix, std::size_t window = 0) {
  return {.embed_dim = 32,
          .depth = 2,
          .num_heads = 2,
          .head_dim = kHead,
          .num_prefix = num_prefix,
          .window = window};
}

}  // namespace

TEST_CASE("position: rows take the even frequencies and columns the odd ones") {
  PositionConfig config = rope_config();
  config.frequencies = AxisFrequencies::alternating;
  const PositionContext context = Position(config, shape_of(0), {}).build_context(kGrid);
  const position::RopeFactors factors = context.factors(0);
  for (std::size_t patch = 0; patch < 15; ++patch) {
    for (std::size_t k = 0; k < kHead / 4; ++k) {
      const auto exponent = [&](std::size_t i) {
        return std::pow(10000.0, -2.0 * static_cast<double>(i) / kHead);
      };
      const double row = static_cast<double>(patch / kGrid.columns) * exponent(2 * k);
      const double column = static_cast<double>(patch % kGrid.columns) * exponent(2 * k + 1);
      CHECK(factors.cos[patch * kHead / 2 + k] == doctest::Approx(std::cos(row)).epsilon(1e-6));
      CHECK(factors.sin[patch * kHead / 2 + kHead / 4 + k] ==
            doctest::Approx(std::sin(column)).epsilon(1e-6));
    }
  }
}

TEST_CASE("position: a class token is rotated by its own angles, other tokens of the prefix stay") {
  PositionConfig config = rope_config();
  config.class_angles = true;
  const std::vector<float> angles{0.5f, -1.0f, 2.0f, 0.25f, 3.0f, -0.125f, 0.0f, 1.5f};
  const PositionContext context =
      Position(config, shape_of(2), {.class_angles = angles}).build_context(kGrid);
  const position::RopeFactors factors = context.factors(1);
  CHECK(context.turns_prefix());
  REQUIRE(factors.num_patches == 2 + 15);
  config.class_angles = false;
  const PositionContext plain = Position(config, shape_of(2), {}).build_context(kGrid);
  CHECK(!plain.turns_prefix());
  for (std::size_t j = 0; j < kHead / 2; ++j) {
    CHECK(factors.cos[j] == static_cast<float>(std::cos(static_cast<double>(angles[j]))));
    CHECK(factors.sin[j] == static_cast<float>(std::sin(static_cast<double>(angles[j]))));
    CHECK(factors.cos[kHead / 2 + j] == 1.0f);
    CHECK(factors.sin[kHead / 2 + j] == 0.0f);
  }
  CHECK(std::equal(plain.factors(0).cos, plain.factors(0).cos + 15 * kHead / 2, factors.cos + kHead));
  config.class_angles = true;
  CHECK(test::contains(test::message_of([&] { Position(config, shape_of(2), {}); }),
                       "angles of the class token"));
}

TEST_CASE("position: rows and factors follow the order of the windows") {
  PositionConfig config = rope_config();
  config.added = AddedTable::patches;
  config.added_grid = kGrid;
  Tensor<float> table(Shape{15, 32});
  for (std::size_t i = 0; i < table.num_elements(); ++i) table.data()[i] = static_cast<float>(i);
  const PositionContext plain = Position(config, shape_of(0), {.added_table = table}).build_context(kGrid);
  const PositionContext windowed =
      Position(config, shape_of(0, 2), {.added_table = table}).build_context(kGrid);
  CHECK(plain.windows() == nullptr);
  REQUIRE(windowed.windows() != nullptr);
  for (std::size_t place = 0; place < 15; ++place) {
    const std::size_t patch = windowed.windows()->patches[place];
    CHECK(std::equal(plain.patch_rows().row(patch), plain.patch_rows().row(patch) + 32,
                     windowed.patch_rows().row(place)));
    const float* const from = plain.factors(0).sin + patch * kHead / 2;
    CHECK(std::equal(from, from + kHead / 2, windowed.factors(0).sin + place * kHead / 2));
  }
}

TEST_CASE("position: corners stay on corners") {
  const auto weights = position::axis_weights(5, 9, TableResampling::bilinear_aligned);
  for (std::size_t i = 0; i < 9; ++i) {
    double sum = 0.0, center = 0.0;
    for (const position::Tap& tap : weights[i]) {
      sum += tap.weight;
      center += tap.weight * static_cast<double>(tap.index);
    }
    CHECK(sum == doctest::Approx(1.0));
    CHECK(center == doctest::Approx(static_cast<double>(i) * 4.0 / 8.0));
  }
  const auto one = position::axis_weights(5, 1, TableResampling::bilinear_aligned);
  CHECK(one[0].front().index == 0);
  CHECK(one[0].front().weight == 1.0);
  const auto same = position::axis_weights(7, 7, TableResampling::bilinear_aligned);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(same[i].front().index == i);
    CHECK(same[i].front().weight == 1.0);
  }
}

TEST_CASE("position: a table is repeated over a larger grid") {
  const auto weights = position::axis_weights(3, 8, TableResampling::tiled);
  for (std::size_t i = 0; i < 8; ++i) {
    REQUIRE(weights[i].size() == 1);
    CHECK(weights[i].front().index == i % 3);
    CHECK(weights[i].front().weight == 1.0);
  }
}

TEST_CASE("position: zeros lie around a table") {
  // positions -0.25, 0.25, ..., 3.25 of four rows: the first and last are a quarter zeros
  const auto weights = position::axis_weights(4, 8, TableResampling::bilinear_zeros);
  for (std::size_t i = 0; i < 8; ++i) {
    const double at = static_cast<double>(i) / 2.0 - 0.25;
    double sum = 0.0, center = 0.0;
    for (const position::Tap& tap : weights[i]) {
      sum += tap.weight;
      center += tap.weight * static_cast<double>(tap.index);
    }
    const bool is_edge = i == 0 || i == 7;
    CHECK(weights[i].size() == (is_edge ? 1 : 2));
    CHECK(sum == doctest::Approx(is_edge ? 0.75 : 1.0));
    CHECK(center == doctest::Approx(i == 0 ? 0.0 : i == 7 ? 0.75 * 3.0 : at));
  }
  const auto same = position::axis_weights(5, 5, TableResampling::bilinear_zeros);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(same[i].front().index == i);
    CHECK(same[i].front().weight == 1.0);
  }
}

TEST_CASE("position: a sampling scale of a tenth more than the new length") {
  const auto weights = position::axis_weights(4, 7, TableResampling::bilinear_plus_tenth);
  for (std::size_t i = 1; i < 7; ++i) {
    double center = 0.0;
    for (const position::Tap& tap : weights[i]) center += tap.weight * static_cast<double>(tap.index);
    CHECK(center ==
          doctest::Approx(std::min(4.0 / 7.1 * (static_cast<double>(i) + 0.5) - 0.5, 3.0)).epsilon(1e-6));
  }
}

TEST_CASE("position: three axes share the pairs of a head, the rest is not rotated") {
  const auto vectors = position::FrequencyVectors::volume_pairs(
      position::RopeFrequencies::from_theta(position::num_volume_frequencies(16), 10000.0), 16);
  REQUIRE(vectors.num_angles() == 8);
  const auto of = vectors.of(0, 0);
  for (std::size_t pair = 0; pair < 8; ++pair) {
    const double f = pair % 2 == 0 ? 1.0 : 0.01;
    CHECK(of[pair].t == (pair < 2 ? f : 0.0));
    CHECK(of[pair].y == (pair >= 2 && pair < 4 ? f : 0.0));
    CHECK(of[pair].x == (pair >= 4 && pair < 6 ? f : 0.0));
  }
}

TEST_CASE("position: a table has rows for each step of a clip, or is read with rows and columns swapped") {
  test::Rng random(41);
  const Tensor<float> clip = random.tensor<float>(Shape{1 + 3 * 4, 8});
  const PositionShape shape{.embed_dim = 8, .depth = 1, .num_heads = 1, .head_dim = 8, .num_prefix = 1};
  PositionConfig config;
  config.added = AddedTable::prefix_and_patches;
  config.added_grid = {2, 2};
  config.added_prefix_rows = 1;
  config.added_steps = 3;
  const Position position(config, shape, {.added_table = clip});
  const PositionContext context = position.build_context({2, 2}, 3);
  REQUIRE(context.patch_rows().shape() == Shape{12, 8});
  CHECK(std::equal(context.prefix_rows().flat().begin(), context.prefix_rows().flat().end(), clip.data()));
  CHECK(std::equal(context.patch_rows().flat().begin(), context.patch_rows().flat().end(), clip.data() + 8));
  CHECK(test::contains(test::message_of([&] { position.build_context({2, 2}, 2); }), "3 steps of 2 x 2"));
  CHECK(test::contains(test::message_of([&] { position.build_context({2, 3}, 3); }), "3 steps of 2 x 2"));

  const Tensor<float> square = random.tensor<float>(Shape{4, 8});
  PositionConfig swapped;
  swapped.added = AddedTable::patches;
  swapped.added_grid = {2, 2};
  swapped.table_grid = TableGrid::swapped;
  swapped.resampling = TableResampling::bilinear;
  const PositionShape patches{.embed_dim = 8, .depth = 1, .num_heads = 1, .head_dim = 8};
  const PositionContext wide = Position(swapped, patches, {.added_table = square}).build_context({2, 5});
  const Tensor<float> high = position::resample_table(square, 0, {2, 2}, {5, 2}, TableResampling::bilinear);
  CHECK(std::ranges::equal(wide.patch_rows().flat(), high.flat()));
}

TEST_CASE("position: a table is read at the nearest position below") {
  for (const std::pair<int, int>& sizes :
       {std::pair(8, 8), std::pair(8, 5), std::pair(4, 8), std::pair(27, 27)}) {
    const int from = sizes.first, to = sizes.second;
    CAPTURE(from);
    CAPTURE(to);
    const auto count = static_cast<std::size_t>(to), length = static_cast<std::size_t>(from);
    const auto weights = position::axis_weights(length, count, TableResampling::bucketed);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(weights[i].size() == 1);
      CHECK(weights[i].front().index == i * length / count);
      CHECK(weights[i].front().weight == 1.0);
    }
  }
  // 6 / 29 in float32 is less than 6 times 1 / 29 rounded to it: the reference reads row 5, too
  const auto rounded = position::axis_weights(29, 29, TableResampling::bucketed);
  bool is_identity = true;
  for (std::size_t i = 0; i < 29; ++i) is_identity = is_identity && rounded[i].front().index == i;
  CHECK_FALSE(is_identity);
}

TEST_CASE("position: windows count from their own corner, global blocks are scaled to a window") {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.coordinates = CoordinateRule::scaled_to_reference;
  config.reference_grid = {2, 2};
  config.per_window = true;
  const std::size_t global[] = {1};
  const Position positions(
      config,
      {.embed_dim = 8, .depth = 3, .num_heads = 1, .head_dim = 8, .window = 2, .global_blocks = global}, {});
  const PositionContext context = positions.build_context({4, 6});
  CHECK(context.factors(0).sin == context.factors(2).sin);
  const auto& order = *context.windows();
  for (std::size_t place = 0; place < 24; ++place) {
    const double row = static_cast<double>(order.patches[place] / 6), column = order.patches[place] % 6;
    // the first frequency of x and of y is 1
    const float* const in_window = context.factors(0).sin + place * 4;
    CHECK(in_window[0] == doctest::Approx(std::sin(std::fmod(column, 2.0))));
    CHECK(in_window[2] == doctest::Approx(std::sin(std::fmod(row, 2.0))));
    const float* const in_grid = context.factors(1).sin + place * 4;
    CHECK(in_grid[0] == doctest::Approx(std::sin(column * 2.0 / 6.0)));
    CHECK(in_grid[2] == doctest::Approx(std::sin(row * 2.0 / 4.0)));
  }
}

TEST_CASE("position: a row for the column and a row for the row are added") {
  Tensor<float> tables(Shape{2, 6, 4});
  for (std::size_t i = 0; i < tables.num_elements(); ++i) tables.data()[i] = static_cast<float>(i * i % 37);
  const Tensor<float> rows = position::add_axis_tables(tables, kGrid);
  for (std::size_t patch = 0; patch < 15; ++patch) {
    for (std::size_t c = 0; c < 4; ++c) {
      const float expected = tables.data()[patch % 5 * 4 + c] + tables.data()[(6 + patch / 5) * 4 + c];
      CHECK(rows.data()[patch * 4 + c] == expected);
    }
  }
  CHECK(test::contains(test::message_of([&] { position::add_axis_tables(tables, {3, 7}); }), "3 x 7"));
}

}  // namespace vit::internal
