// Rules of rope scaling against formulas written here from the publications, and by their properties.
#include "vit/position/rope_scaling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/json_numbers.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/position/position.h"

namespace vit::position {
using namespace internal;

namespace {

constexpr PositionShape kShape{
    .embed_dim = 48, .depth = 2, .num_heads = 3, .head_dim = 16, .trained_grid = {6, 8}};
constexpr double kUnit = 0x1p-53;
constexpr double kTurn = 2.0 * std::numbers::pi;

const std::array<const char*, 6> kRules{
    "none", "linear", "ntk", "yarn", "yarn,beta_fast=3,beta_slow=0.5,axes=common", "ntk,temperature=log"};

PositionConfig axial(CoordinateRule rule) {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.coordinates = rule;
  config.coordinate_offset = rule == CoordinateRule::centered ? 0.0 : 1.0;
  config.reference_grid = {4, 5};
  config.angle_scale = rule == CoordinateRule::centered ? kTurn : 1.0;
  return config;
}

Tensor<float> mixed_frequencies() {
  return test::Rng(11).tensor({2, kShape.depth, kShape.num_heads, kShape.head_dim / 2}, -2.0f, 2.0f);
}

PositionContext context_of(PositionConfig config, GridSize grid, const char* rule) {
  if (rule != nullptr) config.rope_scaling = parse_rope_scaling(rule);
  const Tensor<float> mixed = mixed_frequencies();
  const PositionWeights weights{
      .mixed_frequencies = config.rope == RopeKind::mixed ? mixed.view() : TensorView<const float>()};
  return Position(config, kShape, weights).build_context(grid);
}

std::size_t count_of(const RopeFactors& factors) {
  return factors.num_heads * factors.num_patches * factors.pairs;
}

bool same_bits(const PositionContext& a, const PositionContext& b) {
  for (std::size_t layer = 0; layer < kShape.depth; ++layer) {
    const RopeFactors x = a.factors(layer), y = b.factors(layer);
    if (count_of(x) != count_of(y)) return false;
    const std::size_t bytes = count_of(x) * sizeof(float);
    if (std::memcmp(x.cos, y.cos, bytes) != 0 || std::memcmp(x.sin, y.sin, bytes) != 0) return false;
  }
  return a.logit_factor() == b.logit_factor();
}

std::vector<PositionConfig> all_kinds() {
  std::vector<PositionConfig> out;
  for (const CoordinateRule rule :
       {CoordinateRule::index, CoordinateRule::scaled_to_reference, CoordinateRule::centered}) {
    out.push_back(axial(rule));
    out.push_back(axial(rule));
    out.back().rope = RopeKind::mixed;
  }
  return out;
}

}  // namespace

TEST_CASE("rope scaling: on the trained grid every rule is the identity to the bit") {
  for (const PositionConfig& config : all_kinds()) {
    const PositionContext own = context_of(config, kShape.trained_grid, nullptr);
    for (const char* rule : kRules) {
      CAPTURE(std::string(rule));
      CHECK(same_bits(own, context_of(config, kShape.trained_grid, rule)));
    }
  }
}

TEST_CASE("rope scaling: the rule of the family gives the family's bits on every grid, other rules do not") {
  for (const PositionConfig& config : all_kinds()) {
    const std::string own = to_string(RopeScaling{.rule = default_scaling_rule(config.coordinates)});
    for (const char* rule : {"none", "linear", "ntk", "yarn"}) {
      CAPTURE(std::string(rule));
      const bool is_same = same_bits(context_of(config, {9, 13}, nullptr), context_of(config, {9, 13}, rule));
      // learned pairs that make less than one turn are divided by s under every rule but none
      if (own == rule || config.rope == RopeKind::axial) CHECK(is_same == (own == rule));
    }
  }
}

TEST_CASE("rope scaling: linear is what scaled and centered coordinates do, up to rounding") {
  // counted coordinates with frequencies divided by s, against the rules of grid_coords()
  for (const CoordinateRule rule : {CoordinateRule::scaled_to_reference, CoordinateRule::centered}) {
    const CoordinateOptions options{.rule = rule, .reference = {4, 5}};
    const GridSize grid{9, 20}, trained{6, 8};
    const GridScale scale = grid_scale(grid, trained, options, {});
    const GridCoords counted = extrapolated_coords(grid, trained, options),
                     family = grid_coords(grid, options);
    for (std::size_t i = 0; i < counted.size(); ++i) {
      CHECK(counted.t_x[i] / scale.x.scale == doctest::Approx(family.t_x[i]).epsilon(1e-14));
      CHECK(counted.t_y[i] / scale.y.scale == doctest::Approx(family.t_y[i]).epsilon(1e-14));
    }
  }
}

TEST_CASE("rope scaling: counted coordinates continue with the trained steps") {
  for (const CoordinateRule rule :
       {CoordinateRule::index, CoordinateRule::scaled_to_reference, CoordinateRule::centered}) {
    const CoordinateOptions options{.rule = rule, .reference = {4, 5}};
    const GridCoords trained = grid_coords({6, 8}, options),
                     larger = extrapolated_coords({9, 20}, {6, 8}, options);
    CHECK(larger.t_x[1] - larger.t_x[0] == doctest::Approx(trained.t_x[1] - trained.t_x[0]).epsilon(1e-14));
    CHECK(larger.t_y[20] - larger.t_y[0] == doctest::Approx(trained.t_y[8] - trained.t_y[0]).epsilon(1e-14));
  }
  const GridCoords centered = extrapolated_coords({9, 20}, {6, 8}, {.rule = CoordinateRule::centered});
  CHECK(centered.t_x[0] == doctest::Approx(-centered.t_x[19]));
  CHECK(centered.t_y[0] == doctest::Approx(-centered.t_y[179]));
}

TEST_CASE("rope scaling: ntk is a larger base, keeps the highest frequency and divides the lowest by s") {
  constexpr std::size_t kCount = 8;
  constexpr double kScale = 2.5, kTheta = 100.0, kDim = 2.0 * kCount;
  const RopeFrequencies scaled = scale_frequencies(RopeFrequencies::from_theta(kCount, kTheta),
                                                   {.rule = RopeScalingRule::ntk}, {.scale = kScale});
  const double base = kTheta * std::pow(kScale, kDim / (kDim - 2.0));  // NTK-aware, VisionNTK
  for (std::size_t k = 0; k < kCount; ++k) {
    CHECK(scaled[k] == doctest::Approx(std::pow(base, -2.0 * static_cast<double>(k) / kDim)).epsilon(1e-14));
  }
  CHECK(scaled[0] == 1.0);
  CHECK(scaled[kCount - 1] == doctest::Approx(std::pow(kTheta, -7.0 / 8.0) / kScale).epsilon(1e-15));
  const RopeFrequencies single = scale_frequencies(RopeFrequencies::from_theta(1, kTheta),
                                                   {.rule = RopeScalingRule::ntk}, {.scale = kScale});
  CHECK(single[0] == 1.0);
}

TEST_CASE("rope scaling: yarn has two plateaus and between them a ramp of the logarithm") {
  constexpr double kSpan = 32.0, kScale = 3.0;
  const RopeScaling scaling{.rule = RopeScalingRule::yarn, .beta_fast = 8.0, .beta_slow = 0.5};
  const auto of_turns = [&](double turns) {
    const double f = turns * kTurn / kSpan;
    return scale_frequencies(RopeFrequencies({f}), scaling, {.scale = kScale, .trained_span = kSpan})[0] / f;
  };
  CHECK(of_turns(8.0) == doctest::Approx(1.0).epsilon(1e-14));
  CHECK(of_turns(20.0) == 1.0);
  CHECK(of_turns(0.5) == doctest::Approx(1.0 / kScale).epsilon(1e-14));
  CHECK(of_turns(0.01) == doctest::Approx(1.0 / kScale).epsilon(1e-14));
  CHECK(of_turns(2.0) == doctest::Approx(0.5 + 0.5 / kScale).epsilon(1e-14));  // half way in ln r
  // The index ramp of the published code, on a ladder of theta^(-2k/D), without rounding its ends.
  constexpr double kTheta = 10000.0;
  constexpr std::size_t kCount = 32;
  const RopeScaling code{.rule = RopeScalingRule::yarn};
  constexpr double kLength = 2048.0;
  const RopeFrequencies scaled = scale_frequencies(RopeFrequencies::from_theta(kCount, kTheta), code,
                                                   {.scale = kScale, .trained_span = kLength});
  const auto dimension = [&](double turns) {
    return 2.0 * kCount * std::log(kLength / (turns * kTurn)) / (2.0 * std::log(kTheta));
  };
  const double low = dimension(32.0), high = dimension(1.0);
  for (std::size_t k = 0; k < kCount; ++k) {
    const double f = std::pow(kTheta, -static_cast<double>(k) / kCount);
    const double ramp = std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
    CHECK(scaled[k] == doctest::Approx(f / kScale * ramp + f * (1.0 - ramp)).epsilon(1e-12));
  }
}

TEST_CASE("rope scaling: the numbers of FiT's and transformers' published code") {
  const internal::Json cases = internal::load_json(test::data_path("golden/rope_scaling/expected.json"));
  CHECK(cases.size() >= 150);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const internal::Json expected = cases[i];
    const RopeScaling scaling = parse_rope_scaling(expected.at("rule").as_string());
    CAPTURE(to_string(scaling));
    const std::size_t side = expected.at("trained").as_size();
    const GridSize trained{side, side}, grid{expected.at("rows").as_size(), expected.at("columns").as_size()};
    CAPTURE(to_string(grid));
    const std::vector<double> x = test::numbers_of(expected.at("x")), y = test::numbers_of(expected.at("y"));
    const auto ladder = RopeFrequencies::from_theta(x.size(), expected.at("theta").as_double());
    const GridScale scale = grid_scale(grid, trained, {}, scaling);
    const RopeFrequencies ours_x = scale_frequencies(ladder, scaling, scale.x);
    const RopeFrequencies ours_y = scale_frequencies(ladder, scaling, scale.y);
    REQUIRE(x.size() == ours_x.size());
    // Both in double; theirs raise a base that is itself a power, to at most 1.
    for (std::size_t k = 0; k < x.size(); ++k) {
      CHECK(std::abs(ours_x[k] - x[k]) <= 16 * kUnit * x[k]);
      CHECK(std::abs(ours_y[k] - y[k]) <= 16 * kUnit * y[k]);
    }
    // FiT's factor is that of the longer axis, ours of the mean scale: the same where they are alike.
    if (scale.x.scale == scale.y.scale) {
      const double factor = expected.at("attention_factor").as_double();
      CHECK(logit_factor(scaling, scale, grid, trained) == doctest::Approx(factor * factor).epsilon(1e-14));
    }
  }
}

TEST_CASE("rope scaling: yarn's truncated ramp never reaches before the first frequency") {
  // 10 patches and base 100 as in the shipped model: without it, the fastest pair has 1.6 of 32 turns
  const RopeFrequencies ladder = RopeFrequencies::from_theta(8, 100.0);
  const AxisScale axis{.scale = 2.0, .trained_span = 10.0};
  const RopeFrequencies smooth = scale_frequencies(ladder, parse_rope_scaling("yarn"), axis);
  const RopeFrequencies whole = scale_frequencies(ladder, parse_rope_scaling("yarn,truncate=true"), axis);
  CHECK(whole[0] == ladder[0]);
  CHECK(smooth[0] < 0.6 * ladder[0]);
  for (std::size_t k = 1; k < ladder.size(); ++k) CHECK(whole[k] == ladder[k] / 2.0);
  CHECK_THROWS_AS(
      scale_frequencies(RopeFrequencies({1.0, 1.0}), parse_rope_scaling("yarn,truncate=true"), axis), Error);
}

TEST_CASE("rope scaling: learned frequencies have no ladder to truncate on") {
  PositionConfig config = axial(CoordinateRule::index);
  config.rope = RopeKind::mixed;
  CHECK_THROWS_AS(context_of(config, {9, 13}, "yarn,truncate=true"), Error);
  CHECK(context_of(config, {9, 13}, "yarn,truncate=false").has_rope());
}

TEST_CASE("rope scaling: a grid that is wide but not tall scales one axis") {
  const PositionConfig config = axial(CoordinateRule::index);
  for (const char* rule : {"linear", "ntk", "yarn"}) {
    CAPTURE(std::string(rule));
    const PositionContext own = context_of(config, {6, 16}, nullptr);
    const PositionContext wide = context_of(config, {6, 16}, rule);
    const PositionContext common = context_of(config, {6, 16}, (std::string(rule) + ",axes=common").c_str());
    std::size_t x_differs = 0, y_differs = 0, y_differs_common = 0;
    const RopeFactors a = own.factors(0), b = wide.factors(0), c = common.factors(0);
    for (std::size_t i = 0; i < count_of(a); ++i) {
      const bool is_x = i % a.pairs < a.pairs / 2;
      (is_x ? x_differs : y_differs) += a.sin[i] != b.sin[i];
      y_differs_common += !is_x && a.sin[i] != c.sin[i];
    }
    CHECK(x_differs > 0);
    CHECK(y_differs == 0);
    CHECK(y_differs_common > 0);
  }
}

TEST_CASE("rope scaling: angles stay a function of the distance of two patches") {
  for (const PositionConfig& config : all_kinds()) {
    for (const char* rule : kRules) {
      CAPTURE(std::string(rule));
      const PositionContext context = context_of(config, {9, 13}, rule);
      const RopeFactors factors = context.factors(1);
      // from (r, c) to (r + 1, c + 2), at two places of the grid: e^(i a) e^(-i b) is the same
      const auto step = [&](std::size_t patch, std::size_t pair, double& re, double& im) {
        const std::size_t at = patch * factors.pairs + pair, to = (patch + 13 + 2) * factors.pairs + pair;
        const double c0 = factors.cos[at], s0 = factors.sin[at], c1 = factors.cos[to], s1 = factors.sin[to];
        re = c1 * c0 + s1 * s0;
        im = s1 * c0 - c1 * s0;
      };
      for (std::size_t pair = 0; pair < factors.pairs; ++pair) {
        double re[2], im[2];
        step(0, pair, re[0], im[0]);
        step(6 * 13 + 9, pair, re[1], im[1]);
        CHECK(std::abs(re[0] - re[1]) < 4e-7);  // four factors rounded to float, each to 2^-25
        CHECK(std::abs(im[0] - im[1]) < 4e-7);
      }
    }
  }
}

TEST_CASE("rope scaling: learned frequencies are scaled by their turns over the trained grid") {
  Tensor<double> values(Shape{2, 1, 1, 3});
  // x: 4 turns, 1 turn, 2 turns over 8 columns; y: none but the last, 2 turns over 6 rows
  const double turns_x[3] = {4.0, 1.0, 0.0}, turns_y[3] = {0.0, 0.0, 2.0};
  for (std::size_t j = 0; j < 3; ++j) {
    values.data()[j] = turns_x[j] * kTurn / 8.0;
    values.data()[3 + j] = turns_y[j] * kTurn / 6.0;
  }
  const MixedFrequencies trained(std::as_const(values).view());
  const GridScale scale = grid_scale({12, 16}, {6, 8}, {}, {});
  const auto gains = [&](const RopeScaling& scaling) {
    const MixedFrequencies scaled = scale_frequencies(trained, scaling, scale);
    return std::array<double, 3>{scaled.x(0, 0)[0] / trained.x(0, 0)[0],
                                 scaled.x(0, 0)[1] / trained.x(0, 0)[1],
                                 scaled.y(0, 0)[2] / trained.y(0, 0)[2]};
  };
  for (const double gain : gains({.rule = RopeScalingRule::linear})) CHECK(gain == 0.5);
  const auto ntk = gains({.rule = RopeScalingRule::ntk});
  CHECK(ntk[0] == doctest::Approx(1.0).epsilon(1e-14));
  CHECK(ntk[1] == doctest::Approx(0.5).epsilon(1e-14));
  CHECK(ntk[2] == doctest::Approx(std::sqrt(0.5)).epsilon(1e-14));  // half way in ln r
  const auto yarn = gains({.rule = RopeScalingRule::yarn, .beta_fast = 3.0, .beta_slow = 1.5});
  CHECK(yarn[0] == 1.0);
  CHECK(yarn[1] == 0.5);
  CHECK(yarn[2] == doctest::Approx(0.5 + 0.5 * std::log(2.0 / 1.5) / std::log(2.0)).epsilon(1e-14));
}

TEST_CASE("rope scaling: the factor on the logits") {
  const GridSize trained{6, 8}, grid{12, 16};
  const auto of = [&](const char* rule) {
    const RopeScaling scaling = parse_rope_scaling(rule);
    return logit_factor(scaling, grid_scale(grid, trained, {}, scaling), grid, trained);
  };
  CHECK(of("ntk") == 1.0);
  CHECK(of("yarn") == doctest::Approx(std::pow(0.1 * std::log(2.0) + 1.0, 2)).epsilon(1e-14));
  CHECK(of("yarn,attention_factor=1.5") == 2.25);
  CHECK(of("none,temperature=log") == doctest::Approx(std::log(192.0) / std::log(48.0)).epsilon(1e-14));
  const RopeScaling log{.temperature = RopeTemperature::log};
  CHECK(logit_factor(log, grid_scale({3, 4}, trained, {}, log), {3, 4}, trained) == 1.0);
}

TEST_CASE("rope scaling: rules are read and written, mistakes are reported") {
  for (const char* rule :
       {"none", "linear", "ntk,axes=common", "ntk,factor=1.5", "yarn,beta_fast=4,beta_slow=0.5",
        "yarn,truncate=true,attention_factor=1.25,temperature=log", "none,temperature=log"})
    CHECK(to_string(parse_rope_scaling(rule)) == rule);
  for (const char* wrong : {"",
                            "dynamic",
                            "yarn,",
                            "yarn,beta_fast",
                            "yarn,beta_fast=",
                            "yarn,beta_fast=x",
                            "yarn,beta_fast=0.5",
                            "yarn,truncate=1",
                            "ntk,truncate=true",
                            "yarn,beta_slow=-1",
                            "yarn,beta_fast=inf",
                            "ntk,beta_fast=4",
                            "none,factor=2",
                            "linear,factor=0",
                            "linear,factor=1e9",
                            "linear,scale=2",
                            "linear,axes=x",
                            "yarn,attention_factor=0",
                            "none,temperature=2",
                            "linear;factor=2",
                            "linear\n"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_rope_scaling(wrong), Error);
  }
}

TEST_CASE("rope scaling: a model without rotary positions has nothing to scale") {
  PositionConfig config;
  config.rope_scaling = RopeScaling{};
  CHECK_THROWS_AS(Position(config, kShape, {}), Error);
}

}  // namespace vit::position
