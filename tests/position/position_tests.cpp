#include "vit/position/position.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/tables.h"

namespace vit::position {
using namespace internal;

namespace {

constexpr PositionShape kShape{.embed_dim = 48, .depth = 2, .num_heads = 3, .head_dim = 16};

}  // namespace

TEST_CASE("position: no encoding adds nothing and rotates nothing") {
  const PositionContext context = Position().build_context({3, 4});
  CHECK(context.grid() == GridSize{3, 4});
  CHECK(context.prefix_rows().empty());
  CHECK(context.patch_rows().empty());
  CHECK_FALSE(context.has_rope());
  CHECK(context.factors(5).cos == nullptr);
  CHECK_THROWS_AS(Position().build_context({0, 4}), Error);
}

TEST_CASE("position: axial factors are one table for all layers and heads") {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.pairing = RopePairing::halves;
  config.axis_order = AxisOrder::y_then_x;
  config.coordinates = CoordinateRule::centered;
  config.angle_scale = 6.283185307179586;
  const PositionContext context = Position(config, kShape, {}).build_context({3, 4});
  const RopeFactors factors = context.factors(0);
  CHECK(factors.num_patches == 12);
  CHECK(factors.pairs == 8);
  CHECK(factors.head_stride == 0);
  CHECK(factors.pairing == RopePairing::halves);
  CHECK(context.factors(1).cos == factors.cos);
  const double angle =
      6.283185307179586 * (2.0 * 2.5 / 3.0 - 1.0) * std::pow(100.0, -3.0 / 4.0);  // row 2, k = 3
  CHECK(factors.cos[9 * 8 + 3] == doctest::Approx(std::cos(angle)).epsilon(1e-7));
  CHECK(factors.sin[9 * 8 + 3] == doctest::Approx(std::sin(angle)).epsilon(1e-7));
}

TEST_CASE("position: stored periods replace theta") {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.frequencies = AxisFrequencies::stored;
  const std::vector<float> periods{1.0f, 2.0f, 8.0f, 32.0f};
  const PositionContext context = Position(config, kShape, {.periods = periods}).build_context({1, 3});
  CHECK(context.factors(0).sin[2 * 8 + 1] == static_cast<float>(std::sin(2.0 / 2.0)));
  CHECK(context.factors(0).sin[2 * 8 + 3] == static_cast<float>(std::sin(2.0 / 32.0)));
}

TEST_CASE("position: mixed factors differ by layer and head") {
  test::Rng random(31);
  const Tensor<float> frequencies = random.tensor<float>(Shape{2, 2, 3, 8});
  PositionConfig config;
  config.rope = RopeKind::mixed;
  const PositionContext context =
      Position(config, kShape, {.mixed_frequencies = frequencies}).build_context({3, 4});
  config.axis_order = AxisOrder::y_then_x;
  const PositionContext rows_first =
      Position(config, kShape, {.mixed_frequencies = frequencies}).build_context({3, 4});
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const RopeFactors factors = context.factors(layer);
    REQUIRE(factors.head_stride == 12 * 8);
    for (std::size_t head = 0; head < 3; ++head) {
      const double x = frequencies.data()[(layer * 3 + head) * 8 + 5];
      const double y = frequencies.data()[((2 + layer) * 3 + head) * 8 + 5];
      CHECK(factors.cos[head * factors.head_stride + 7 * 8 + 5] ==
            static_cast<float>(std::cos(3.0 * x + 1.0 * y)));
      CHECK(rows_first.factors(layer).cos[head * factors.head_stride + 7 * 8 + 5] ==
            static_cast<float>(std::cos(1.0 * x + 3.0 * y)));
    }
  }
  CHECK_THROWS_AS(context.factors(2), Error);
  CHECK(context.bytes() ==
        2 * 2 * 3 * 12 * 8 * sizeof(float));  // cos and sin of layers, heads, patches, pairs
}

TEST_CASE("position: rows of a learned table split into prefix and patches") {
  test::Rng random(32);
  const Tensor<float> table = random.tensor<float>(Shape{2 + 12, 48});
  PositionConfig config;
  config.added = AddedTable::prefix_and_patches;
  config.added_grid = {3, 4};
  const Position position(config, kShape, {.added_table = table});
  CHECK(position.num_prefix_rows() == 2);
  const PositionContext native = position.build_context({3, 4});
  REQUIRE(native.prefix_rows().shape() == Shape{2, 48});
  REQUIRE(native.patch_rows().shape() == Shape{12, 48});
  CHECK(std::equal(native.prefix_rows().flat().begin(), native.prefix_rows().flat().end(), table.data()));
  CHECK(std::equal(native.patch_rows().flat().begin(), native.patch_rows().flat().end(),
                   table.data() + 2 * 48));

  const PositionContext wide = position.build_context({2, 6});  // as many patches, another grid
  const Tensor<float> expected = resample_table(table, 2, {3, 4}, {2, 6}, TableResampling::bicubic_antialias);
  CHECK(std::equal(wide.prefix_rows().flat().begin(), wide.prefix_rows().flat().end(), table.data()));
  CHECK(
      std::equal(wide.patch_rows().flat().begin(), wide.patch_rows().flat().end(), expected.data() + 2 * 48));
  CHECK_FALSE(
      std::equal(wide.patch_rows().flat().begin(), wide.patch_rows().flat().end(), table.data() + 2 * 48));

  config.added = AddedTable::patches;
  const TensorView<const float> patches(table.data() + 2 * 48, Shape{12, 48});
  const PositionContext without = Position(config, kShape, {.added_table = patches}).build_context({5, 5});
  CHECK(without.prefix_rows().empty());
  CHECK(without.patch_rows().shape() == Shape{25, 48});
}

TEST_CASE("position: weights that do not fit the config are errors with both shapes") {
  const Tensor<float> table(Shape{12, 48}), frequencies(Shape{2, 2, 3, 4});
  const std::vector<float> periods{1.0f, 2.0f};
  PositionConfig config;
  const auto build = [&](const PositionWeights& weights) { return Position(config, kShape, weights); };
  SUBCASE("without encoding") {
    CHECK_ERROR(ErrorKind::mismatch, ("(12, 48)"), build({.added_table = table}));
    CHECK_ERROR(ErrorKind::mismatch, ("(2, 2, 3, 4)"), build({.mixed_frequencies = frequencies}));
    CHECK_ERROR(ErrorKind::mismatch, ("2 stored periods"), build({.periods = periods}));
  }
  SUBCASE("learned table of the patches") {
    config.added = AddedTable::patches;
    config.added_grid = {3, 5};
    CHECK_ERROR(ErrorKind::mismatch, ("learned table"), build({}));
    CHECK_ERROR(ErrorKind::mismatch, ("(12, 48)", "(15, 48)"), build({.added_table = table}));
  }
  SUBCASE("learned table without a row for the prefix") {
    config.added = AddedTable::prefix_and_patches;
    config.added_grid = {3, 4};
    CHECK_ERROR(ErrorKind::mismatch, ("(12, 48)", "(prefix + 12, 48)"), build({.added_table = table}));
  }
  SUBCASE("learned frequencies") {
    config.rope = RopeKind::mixed;
    CHECK_ERROR(ErrorKind::mismatch, ("frequencies"), build({}));
    CHECK_ERROR(ErrorKind::mismatch, ("(2, 2, 3, 4)", "(2, 2, 3, 8)"),
                build({.mixed_frequencies = frequencies}));
  }
  SUBCASE("stored periods") {
    config.rope = RopeKind::axial;
    config.frequencies = AxisFrequencies::stored;
    CHECK_ERROR(ErrorKind::mismatch, ("0 stored periods"), build({}));
    CHECK_ERROR(ErrorKind::mismatch, ("2 stored periods", "expected 4"), build({.periods = periods}));
  }
  SUBCASE("no reference grid") {
    config.rope = RopeKind::axial;
    config.coordinates = CoordinateRule::scaled_to_reference;
    CHECK_ERROR(ErrorKind::mismatch, ("reference grid"), build({}));
  }
}

}  // namespace vit::position
