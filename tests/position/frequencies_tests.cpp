#include "vit/position/rope.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

namespace vit::position {

TEST_CASE("position: coordinates follow the row-major grid") {
  const GridCoords coords = grid_coords({3, 5});
  REQUIRE(coords.size() == 15);
  for (std::size_t t = 0; t < 15; ++t) {
    CHECK(coords.t_x[t] == static_cast<double>(t % 5));
    CHECK(coords.t_y[t] == std::floor(static_cast<double>(t) / 5.0));
  }
  const GridCoords moved = grid_coords({3, 5}, {.offset = 1.0});
  CHECK(moved.t_x[7] == 3.0);
  CHECK(moved.t_y[7] == 2.0);
}

TEST_CASE("position: scaled coordinates reach the reference grid, each axis by its own") {
  const GridCoords coords =
      grid_coords({4, 8}, {.rule = CoordinateRule::scaled_to_reference, .reference = {16, 24}});
  CHECK(coords.t_x[8 + 3] == 3.0 / 8.0 * 24.0);
  CHECK(coords.t_y[8 + 3] == 1.0 / 4.0 * 16.0);
  const GridCoords offset = grid_coords(
      {4, 8}, {.rule = CoordinateRule::scaled_to_reference, .offset = 1.0, .reference = {16, 24}});
  CHECK(offset.t_x[8 + 3] == 4.0 / 8.0 * 24.0);
}

TEST_CASE("position: centered coordinates are patch centers in [-1, 1]") {
  const GridCoords one = grid_coords({1, 1}, {.rule = CoordinateRule::centered});
  CHECK(one.t_x[0] == 0.0);
  CHECK(one.t_y[0] == 0.0);
  const auto at_corner = [](CenteredBy centered_by) {
    const GridCoords coords =
        grid_coords({2, 4}, {.rule = CoordinateRule::centered, .centered_by = centered_by});
    return std::pair(coords.t_x.back(), coords.t_y.back());
  };
  CHECK(grid_coords({1, 4}, {.rule = CoordinateRule::centered, .offset = 0.25}).t_x[1] == -0.125);
  CHECK(at_corner(CenteredBy::each_axis) == std::pair(0.75, 0.5));
  CHECK(at_corner(CenteredBy::longer_side) == std::pair(0.75, -0.25));
  CHECK(at_corner(CenteredBy::shorter_side) == std::pair(2.5, 0.5));
}

TEST_CASE("position: coordinates from corner to corner reach those of the reference grid") {
  const GridCoords coords = grid_coords({4, 8}, {.rule = CoordinateRule::corners, .reference = {16, 22}});
  CHECK(coords.t_x[8 + 3] == 3.0 * 21.0 / 7.0);
  CHECK(coords.t_y[8 + 3] == 1.0 * 15.0 / 3.0);
  CHECK(coords.t_x.back() == 21.0);
  CHECK(coords.t_y.back() == 15.0);
  const GridCoords line = grid_coords({1, 3}, {.rule = CoordinateRule::corners, .reference = {16, 16}});
  CHECK(line.t_y == std::vector<double>(3, 0.0));
}

TEST_CASE("position: impossible grids and frequencies are errors") {
  CHECK_THROWS_AS(grid_coords({0, 4}), Error);
  CHECK_THROWS_AS(grid_coords({2, 4}, {.rule = CoordinateRule::scaled_to_reference}), Error);
  CHECK_THROWS_AS(grid_coords({2, 4}, {.rule = CoordinateRule::corners}), Error);
  CHECK_THROWS_AS(grid_coords({2, 4}, {.rule = CoordinateRule::corners, .offset = 1.0, .reference = {2, 2}}),
                  Error);
  CHECK_THROWS_AS(grid_coords({2, 4}, {.offset = std::nan("")}), Error);
  CHECK_THROWS_AS(num_patches({std::size_t{1} << 40, std::size_t{1} << 40}), Error);
  CHECK_THROWS_AS(num_axial_frequencies(18), Error);
  CHECK_THROWS_AS(num_axial_frequencies(0), Error);
  CHECK_THROWS_AS(num_frequencies_1d(7), Error);
  CHECK_THROWS_AS(RopeFrequencies::from_theta(4, 0.0), Error);
  CHECK_THROWS_AS(RopeFrequencies::from_theta(0, 100.0), Error);
  CHECK_THROWS_AS(RopeFrequencies::from_period_range(4, {.shortest = 2.0, .longest = 1.0}), Error);
  const float periods[] = {1.0f, 0.0f};
  CHECK_THROWS_AS(RopeFrequencies::from_periods(periods), Error);
  Tensor<float> flat(Shape{2, 3, 8});
  CHECK_THROWS_AS(MixedFrequencies{flat.view()}, Error);
  Tensor<float> damaged(Shape{2, 1, 1, 2});
  damaged.data()[3] = std::nanf("");
  CHECK_THROWS_AS(MixedFrequencies{damaged.view()}, Error);
}

TEST_CASE("position: frequencies follow their formulas") {
  constexpr std::size_t kHeadDim = 24;
  const double d = kHeadDim;
  const RopeFrequencies axial = RopeFrequencies::from_theta(num_axial_frequencies(kHeadDim), 100.0);
  REQUIRE(axial.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(axial[i] ==
          doctest::Approx(std::exp(-4.0 * static_cast<double>(i) / d * std::log(100.0))).epsilon(1e-14));
  }
  const RopeFrequencies line = RopeFrequencies::from_theta(num_frequencies_1d(kHeadDim), 1e6);
  const RopeFrequencies exp_pi = RopeFrequencies::exp_pi(num_frequencies_1d(kHeadDim));
  REQUIRE(line.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / d;
    CHECK(line[i] == doctest::Approx(std::exp(-exponent * std::log(1e6))).epsilon(1e-14));
    CHECK(exp_pi[i] == doctest::Approx(std::pow(std::exp(-std::numbers::pi), exponent)).epsilon(1e-14));
  }
  const RopeFrequencies range = RopeFrequencies::from_period_range(3, {.shortest = 0.5, .longest = 8.0});
  CHECK(range[0] == doctest::Approx(2.0).epsilon(1e-15));
  CHECK(range[1] == doctest::Approx(0.5).epsilon(1e-15));  // geometric middle of 0.5 and 8 is 2
  CHECK(range[2] == doctest::Approx(0.125).epsilon(1e-15));
  CHECK(RopeFrequencies::from_period_range(1, {.shortest = 0.5, .longest = 8.0})[0] == 2.0);
  const RopeFrequencies bands = RopeFrequencies::pixel_bands(3, 10.0);
  CHECK(bands[0] == doctest::Approx(std::numbers::pi));
  CHECK(bands[1] == doctest::Approx(3.0 * std::numbers::pi));
  CHECK(bands[2] == doctest::Approx(5.0 * std::numbers::pi));
  const float periods[] = {0.25f, 4.0f};
  const RopeFrequencies stored = RopeFrequencies::from_periods(periods).scaled(2.0 * std::numbers::pi);
  CHECK(stored[0] == doctest::Approx(8.0 * std::numbers::pi).epsilon(1e-15));
  CHECK(stored[1] == doctest::Approx(0.5 * std::numbers::pi).epsilon(1e-15));
}

namespace {

struct GoldenAngles {
  const char* name;
  GridSize grid;
  CoordinateOptions coordinates;
  AxisOrder order;
  double theta;
  double angle_scale;
  std::size_t head_dim;
  double expected[6];  // a_0, a_1, a_{F-1}, a_F, a_{F+1}, a_{d/2-1} of the patch at row 3, column 5
};

constexpr double kTurn = 2.0 * std::numbers::pi;
constexpr CoordinateRule kIndex = CoordinateRule::index;
constexpr CoordinateRule kScaled = CoordinateRule::scaled_to_reference;
constexpr CoordinateRule kCentred = CoordinateRule::centered;

const GoldenAngles kGoldenAngles[] = {
    {"EVA-02, 24 x 24",
     {24, 24},
     {kScaled, 0.0, {16, 16}},
     AxisOrder::y_then_x,
     1e4,
     1.0,
     64,
     {2.000000000, 1.124682650, 0.000355656, 3.333333333, 1.874471084, 0.000592760}},
    {"timm SBB, 16 x 16",
     {16, 16},
     {kScaled, 0.0, {16, 16}},
     AxisOrder::y_then_x,
     1e4,
     1.0,
     64,
     {3.000000000, 1.687023976, 0.000533484, 5.000000000, 2.811706626, 0.000889140}},
    {"EVA02-CLIP, 14 x 14",
     {14, 14},
     {kScaled, 0.0, {16, 16}},
     AxisOrder::y_then_x,
     1e4,
     1.0,
     64,
     {3.428571429, 1.928027401, 0.000609696, 5.714285714, 3.213379001, 0.001016160}},
    {"rope-vit",
     {14, 14},
     {kIndex},
     AxisOrder::x_then_y,
     100.0,
     1.0,
     64,
     {5.000000000, 3.749471047, 0.066676072, 3.000000000, 2.249682628, 0.040005643}},
    {"PE with class token",
     {14, 14},
     {kIndex, 1.0},
     AxisOrder::x_then_y,
     1e4,
     1.0,
     64,
     {6.000000000, 3.374047951, 0.001066968, 4.000000000, 2.249365301, 0.000711312}},
    {"PE-G",
     {32, 32},
     {kIndex},
     AxisOrder::x_then_y,
     1e4,
     1.0,
     96,
     {5.000000000, 3.406460345, 0.000733900, 3.000000000, 2.043876207, 0.000440340}},
    {"DINOv3, 16 x 16",
     {16, 16},
     {kCentred},
     AxisOrder::y_then_x,
     100.0,
     kTurn,
     64,
     {-3.534291735, -2.650344906, -0.047130538, -1.963495408, -1.472413837, -0.026183632}},
    {"DINOv3, 14 x 14",
     {14, 14},
     {kCentred},
     AxisOrder::y_then_x,
     100.0,
     kTurn,
     64,
     {-3.141592654, -2.355862139, -0.041893811, -1.346396852, -1.009655202, -0.017954491}},
    {"SAM 2",
     {64, 64},
     {kIndex},
     AxisOrder::x_then_y,
     1e4,
     1.0,
     256,
     {5.000000000, 4.329821617, 0.000577391, 3.000000000, 2.597892970, 0.000346435}},
};

}  // namespace

TEST_CASE("position: angles of the published families") {
  for (const GoldenAngles& golden : kGoldenAngles) {
    CAPTURE(golden.name);
    const std::size_t f = num_axial_frequencies(golden.head_dim);
    const Tensor<double> angles =
        axial_angles(grid_coords(golden.grid, golden.coordinates),
                     RopeFrequencies::from_theta(f, golden.theta).scaled(golden.angle_scale), golden.order);
    const double* const row = angles.data() + (3 * golden.grid.columns + 5) * 2 * f;
    const std::size_t at[] = {0, 1, f - 1, f, f + 1, 2 * f - 1};
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(std::abs(row[at[i]] - golden.expected[i]) <= 5.1e-10);  // nine printed decimals
    }
  }
}

}  // namespace vit::position
