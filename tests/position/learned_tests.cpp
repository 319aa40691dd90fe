#include "vit/position/tables.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/position/rope.h"

namespace vit::position {
namespace {

constexpr TableResampling kAll[] = {
    TableResampling::bicubic_antialias,  TableResampling::bicubic,
    TableResampling::bicubic_plus_tenth, TableResampling::bilinear,
    TableResampling::bilinear_antialias, TableResampling::bilinear_plus_tenth};

TEST_CASE("position: taps outside of the table are an error") {
  const Tensor<float> table(Shape{6, 4});
  const AxisWeights outside({{Tap{2, 1}}, {Tap{0, 1}}}), fits({{Tap{0, 1}}, {Tap{2, 1}}});
  resample_table(table, 0, {2, 3}, axis_weights(2, 2, TableResampling::tiled), fits);
  CHECK_THROWS_AS(resample_table(table, 0, {2, 3}, outside, fits), const Error&);
  CHECK_THROWS_AS(resample_table(table, 0, {3, 2}, fits, fits), const Error&);
  CHECK_THROWS_AS(add_axis_tables(TensorView<const float>(nullptr, Shape{2, 3, 4}), {2, 2}), const Error&);
}

void check_taps(std::span<const Tap> taps, const std::vector<std::size_t>& indices,
                const std::vector<double>& weights, double tolerance) {
  REQUIRE(taps.size() == indices.size());
  for (std::size_t k = 0; k < taps.size(); ++k) {
    CAPTURE(k);
    CHECK(taps[k].index == indices[k]);
    CHECK(std::abs(taps[k].weight - weights[k]) <= tolerance);
  }
}

// ((5 r + 3 c) mod 7) - 3 on 5 rows x 4 columns, after `num_prefix_rows` rows of 100, 101, ...
Tensor<float> pattern_table(std::size_t num_prefix_rows) {
  Tensor<float> table(Shape{num_prefix_rows + 20, 1});
  for (std::size_t p = 0; p < num_prefix_rows; ++p) table.data()[p] = 100.0f + static_cast<float>(p);
  for (std::size_t r = 0; r < 5; ++r) {
    for (std::size_t c = 0; c < 4; ++c) {
      table.data()[num_prefix_rows + r * 4 + c] = static_cast<float>((r * 5 + c * 3) % 7) - 3.0f;
    }
  }
  return table;
}

struct Resampled {
  TableResampling resampling;
  GridSize grid;
  std::vector<double> expected;  // torch.nn.functional.interpolate in float64
};

const Resampled kResampled[] = {
    {TableResampling::bicubic_antialias,
     {7, 3},
     {-2.62069272, 1.87726677,  0.27668792,  -0.60911402, 0.38969219, -1.14970493, 1.16802877,
      -0.24244957, -1.23289590, 0.97025172,  1.00000000,  1.02974828, -0.75113249, -0.58163265,
      -0.41213282, 0.10116825,  -0.47229917, -1.04576659, 2.00697607, 0.58737864,  -0.83221879}},
    {TableResampling::bicubic,
     {7, 3},
     {-2.93603215, 2.36534257,  -0.21640819, -0.21179881, 0.45772595, -1.94077651, 1.66755581,
      -0.30717019, -1.48293077, 0.50000000,  1.00000000,  1.50000000, -1.43404296, -0.57069971,
      0.29264355,  -0.08357629, -0.58017493, -1.07677357, 2.67878064, 0.61807580,  -1.44262904}},
    {TableResampling::bicubic_plus_tenth,
     {7, 3},
     {-3.00434661, 2.13583731,  0.29074587,  -0.23274525, 0.15523559, -1.30087325, 1.73653081,
      -0.51251108, -1.30776075, 0.50485283,  1.34849593,  1.04786888, -1.45858504, 0.01337519,
      -0.13748732, -0.34724239, -0.56260020, -1.12140373, 2.66681992, 0.22835715,  -0.86792403}},
    {TableResampling::bilinear,
     {7, 3},
     {-2.50000000, 1.50000000,  -0.33333333, -0.30952381, 0.35714286, -1.47619048, 1.09523810,
      -0.07142857, -1.23809524, 0.50000000,  1.00000000,  1.50000000, -0.92857143, -0.42857143,
      0.07142857,  0.14285714,  -0.35714286, -0.85714286, 2.33333333, 0.50000000,  -1.33333333}},
    {TableResampling::bilinear_antialias,
     {7, 3},
     {-2.10000000, 1.50000000,  0.20000000,  -0.44285714, 0.35714286, -0.94285714, 0.82857143,
      -0.07142857, -0.97142857, 0.90000000,  1.00000000,  1.10000000, -0.52857143, -0.42857143,
      -0.32857143, 0.14285714,  -0.35714286, -0.85714286, 1.80000000, 0.50000000,  -0.80000000}},
    {TableResampling::bicubic_antialias,
     {3, 6},
     {-0.79190283, -1.04705882, -0.49437322, 2.14779202, 0.24977376, -2.20040486, -0.10097919, 0.88673051,
      1.26645134, -1.01012059, -0.47441860, 0.65299878, 0.85769231, 0.39457014, -0.13233618, -0.14458689,
      -0.67149321, -1.13461538}},
    {TableResampling::bicubic,
     {3, 6},
     {-1.35018004, -1.42881944, -0.30947788, 2.38316615, 0.60474537, -2.28838735, -0.26041667, 1.87500000,
      2.63425926, -0.63425926, 0.12500000, 2.26041667, 1.47074331, 0.34201389, -0.49194102, 0.32527435,
      -0.50868056, -1.63740998}},
    {TableResampling::bicubic_plus_tenth,
     {3, 6},
     {-1.53100359, -1.45927197, -0.31733866, 2.35973230, 0.93572671, -2.09300424, 0.03252214, 1.78602055,
      2.51319093, -0.31970252, -0.00642459, 1.93008874, 0.57340073, 0.16592977, -0.32510195, -0.39442501,
      -0.85368973, -1.29531527}},
    {TableResampling::bilinear,
     {3, 6},
     {-1.33333333, -1.00000000, -0.16666667, 1.83333333, 0.33333333, -1.66666667, 0.00000000, 1.50000000,
      2.33333333, -0.33333333, 0.50000000, 2.00000000, 1.33333333, 0.50000000, -0.22222222, 0.22222222,
      -0.50000000, -1.33333333}},
    {TableResampling::bilinear_antialias,
     {3, 6},
     {-0.85714286, -0.85714286, -0.35714286, 1.64285714, 0.14285714, -1.85714286, 0.00000000, 0.72222222,
      1.03703704, -0.59259259, -0.27777778, 0.44444444, 0.85714286, 0.35714286, -0.14285714, -0.14285714,
      -0.64285714, -1.14285714}},
};

}  // namespace

TEST_CASE("position: golden weights from 37 to 16") {
  using enum TableResampling;
  for (const SourceCoordinates coordinates : {SourceCoordinates::exact, SourceCoordinates::float32}) {
    // 37 / 16 is exact in float32, 37 / 16.1 is not: a coordinate of 34 may be off by 34 * 2^-24 there, a
    // weight by twice as much.
    const double rounding = coordinates == SourceCoordinates::exact ? 0.0 : 5e-6;
    const AxisWeights exact_size = axis_weights(37, 16, bicubic, coordinates);
    check_taps(exact_size[0], {0, 0, 1, 2}, {-0.05815887, 0.38428497, 0.78490448, -0.11103058}, 6e-9);
    check_taps(exact_size[1], {1, 2, 3, 4}, {-0.00070953, 0.0248642, 0.99784088, -0.02199554}, 6e-9);
    check_taps(exact_size[15], {34, 35, 36, 36}, {-0.11103058, 0.78490448, 0.38428497, -0.05815887}, 6e-9);
    const AxisWeights plus_tenth = axis_weights(37, 16, bicubic_plus_tenth, coordinates);
    check_taps(plus_tenth[0], {0, 0, 1, 2}, {-0.05995105, 0.39390544, 0.77692854, -0.11088292},
               6e-9 + rounding);
    check_taps(plus_tenth[1], {1, 2, 3, 4}, {-0.00198012, 0.0435933, 0.99391249, -0.03552567},
               6e-9 + rounding);
    check_taps(plus_tenth[15], {34, 35, 36, 36}, {-0.07016671, 0.9692144, 0.11062193, -0.00966962},
               6e-9 + rounding);
    const double inverse_rounding =
        coordinates == SourceCoordinates::exact ? 0.0 : 2e-7;  // 16 / 37 is not exact
    const AxisWeights antialias = axis_weights(37, 16, bicubic_antialias, coordinates);
    check_taps(antialias[0], {0, 1, 2, 3, 4, 5},
               {0.3871864, 0.4414507, 0.2092562, -0.0030565, -0.031817, -0.0030198}, 6e-8 + inverse_rounding);
    check_taps(antialias[1], {0, 1, 2, 3, 4, 5, 6, 7},
               {-0.0311431, 0.0486024, 0.2873362, 0.4276806, 0.2720669, 0.0375228, -0.0315834, -0.0104824},
               6e-8 + inverse_rounding);
  }
}

TEST_CASE("position: weights sum to one and stay inside the table, whatever the lengths") {
  for (const TableResampling resampling : kAll) {
    for (const SourceCoordinates coordinates : {SourceCoordinates::exact, SourceCoordinates::float32}) {
      for (const std::size_t from : {1u, 2u, 3u, 14u, 37u}) {
        for (const std::size_t to : {1u, 2u, 5u, 16u, 64u, 333u}) {
          const AxisWeights weights = axis_weights(from, to, resampling, coordinates);
          REQUIRE(weights.size() == to);
          for (std::size_t i = 0; i < to; ++i) {
            double sum = 0.0;
            for (const Tap& tap : weights[i]) {
              CHECK(tap.index < from);
              sum += tap.weight;
            }
            CHECK(sum == doctest::Approx(1.0).epsilon(1e-14));
          }
        }
      }
    }
  }
  CHECK_THROWS_AS(axis_weights(0, 4, TableResampling::bicubic), Error);
  CHECK_THROWS_AS(axis_weights(4, 0, TableResampling::bicubic_antialias), Error);
}

TEST_CASE("position: rectangular tables resample to the reference values, prefix rows stay") {
  const Tensor<float> table = pattern_table(2);
  for (const Resampled& golden : kResampled) {
    CAPTURE(static_cast<int>(golden.resampling));
    const Tensor<float> out =
        resample_table(table, 2, {5, 4}, golden.grid, golden.resampling, SourceCoordinates::exact);
    REQUIRE(out.shape() == Shape{2 + num_patches(golden.grid), 1});
    CHECK(out.data()[0] == 100.0f);
    CHECK(out.data()[1] == 101.0f);
    // eight printed decimals and one rounding of a value below 4 to float32
    for (std::size_t i = 0; i < golden.expected.size(); ++i) {
      CHECK(std::abs(static_cast<double>(out.data()[2 + i]) - golden.expected[i]) <= 5e-9 + 0x1p-23);
    }
  }
}

TEST_CASE("position: coordinates rounded to float32 move a table only by their rounding") {
  test::Rng random(11);
  const Tensor<float> table = random.tensor<float>(Shape{1 + 37 * 37, 3});
  for (const TableResampling resampling : kAll) {
    const Tensor<float> rounded = resample_table(table, 1, {37, 37}, {50, 23}, resampling);
    const Tensor<float> exact =
        resample_table(table, 1, {37, 37}, {50, 23}, resampling, SourceCoordinates::exact);
    double largest = 0.0;
    for (std::size_t i = 0; i < exact.num_elements(); ++i) {
      largest = std::max(largest, static_cast<double>(std::abs(rounded.data()[i] - exact.data()[i])));
    }
    CHECK(largest > 0.0);
    CHECK(largest <= 4e-5);  // two axes, coordinates off by at most 2 * 37 * 2^-24, slopes of a cubic below 4
  }
}

TEST_CASE("position: source coordinates round where PyTorch rounds them") {
  // A table of alternating signs shows the fractions of the coordinates: rows 40 to 47 of 37 resampled to 50
  // by torch in float32. Exact coordinates are up to 4e-6 away from them.
  Tensor<float> table(Shape{37, 1});
  for (std::size_t r = 0; r < 37; ++r) table.data()[r] = r % 2 == 0 ? 1.0f : -1.0f;
  const std::pair<TableResampling, std::vector<float>> goldens[] = {
      {TableResampling::bilinear,
       {-0.0599975586f, 0.579998016f, -0.900001526f, 0.380001068f, 0.13999939f, -0.659996033f, 0.819999695f,
        -0.300003052f}},
      {TableResampling::bilinear_antialias,
       {-0.0599975586f, 0.579998016f, -0.900001526f, 0.379997253f, 0.13999939f, -0.659996033f, 0.819999695f,
        -0.300003052f}},
      {TableResampling::bicubic,
       {-0.0898883343f, 0.772441864f, -0.985500336f, 0.542565227f, 0.208627045f, -0.846248806f, 0.954315841f,
        -0.436503947f}},
      {TableResampling::bicubic_antialias,
       {-0.0898883194f, 0.772442043f, -0.985500395f, 0.542560458f, 0.20862709f, -0.846248388f, 0.954315782f,
        -0.436504126f}},
  };
  for (const auto& [resampling, golden] : goldens) {
    const int rule = static_cast<int>(resampling);
    CAPTURE(rule);
    const Tensor<float> rounded = resample_table(table, 0, {37, 1}, {50, 1}, resampling);
    const Tensor<float> exact =
        resample_table(table, 0, {37, 1}, {50, 1}, resampling, SourceCoordinates::exact);
    float rounded_difference = 0.0f, exact_difference = 0.0f;
    for (std::size_t i = 0; i < golden.size(); ++i) {
      rounded_difference = std::max(rounded_difference, std::abs(rounded.data()[40 + i] - golden[i]));
      exact_difference = std::max(exact_difference, std::abs(exact.data()[40 + i] - golden[i]));
    }
    CHECK(rounded_difference <= 6e-7f);  // torch also evaluates the cubic in float32: ten roundings of 2^-24
    CHECK(exact_difference > 3e-6f);
  }
}

TEST_CASE("position: an equal grid is the identity of every kernel but the one with the tenth") {
  test::Rng random(12);
  const Tensor<float> table = random.tensor<float>(Shape{1 + 3 * 5, 2});
  for (const TableResampling resampling : kAll) {
    const Tensor<float> out = resample_table(table, 1, {3, 5}, {3, 5}, resampling);
    const bool equal = std::equal(table.flat().begin(), table.flat().end(), out.data());
    CHECK(equal == (resampling != TableResampling::bicubic_plus_tenth));
  }
}

TEST_CASE("position: when a table is used as it is") {
  CHECK(is_reused({4, 4}, {4, 4}, TableReuse::equal_grid));
  CHECK_FALSE(is_reused({4, 4}, {2, 8}, TableReuse::equal_grid));
  CHECK(is_reused({2, 8}, {2, 8}, TableReuse::equal_grid));
  CHECK(is_reused({4, 4}, {4, 4}, TableReuse::equal_count_and_square));
  CHECK_FALSE(is_reused({4, 4}, {2, 8}, TableReuse::equal_count_and_square));
  CHECK_FALSE(is_reused({4, 4}, {5, 5}, TableReuse::equal_count_and_square));
  CHECK_FALSE(is_reused({4, 4}, {4, 4}, TableReuse::never));
}

TEST_CASE(
    "position: by the bilinear kernel with the tenth an axis of its own length stays, the other does not") {
  constexpr auto kTenth = TableResampling::bilinear_plus_tenth;
  const AxisWeights same = axis_weights(8, 8, kTenth);
  for (std::size_t i = 0; i < 8; ++i) {
    for (const Tap& tap : same[i]) CHECK((tap.weight == 0.0 || (tap.index == i && tap.weight == 1.0)));
  }
  const AxisWeights half = axis_weights(8, 4, kTenth);  // 8 / 4.1 * 0.5 - 0.5 of the way
  CHECK(half[0][1].weight == doctest::Approx(8.0 / 4.1 * 0.5 - 0.5));
}

TEST_CASE("position: a table without the rows of its grid is an error") {
  const Tensor<float> table(Shape{17, 4});
  CHECK_NOTHROW(resample_table(table, 1, {4, 4}, {3, 5}, TableResampling::bicubic));
  CHECK_THROWS_AS(resample_table(table, 0, {4, 4}, {3, 5}, TableResampling::bicubic), Error);
  CHECK_THROWS_AS(resample_table(table, 1, {4, 4}, {0, 5}, TableResampling::bicubic), Error);
  CHECK_THROWS_AS(resample_table(TensorView<const float>(), 1, {4, 4}, {3, 5}, TableResampling::bicubic),
                  Error);
}

}  // namespace vit::position
