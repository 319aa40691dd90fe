#include "vit/position/rope.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/attention.h"

namespace vit::position {
namespace {

constexpr RopePairing kPairings[] = {RopePairing::neighbors, RopePairing::halves};

RopeFrequencies frequencies_of(std::size_t head_dim, double theta = 100.0) {
  return RopeFrequencies::from_theta(num_axial_frequencies(head_dim), theta);
}

// One vector, one patch.
std::vector<double> rotated(const std::vector<double>& x, double t_x, double t_y,
                            const RopeFrequencies& frequencies, RopePairing pairing) {
  const auto table = build_axial_table<double>({{t_x}, {t_y}}, frequencies, {.pairing = pairing});
  std::vector<double> y = x;
  rotate(TensorView<double>(y.data(), Shape{1, 1, y.size()}), table);
  return y;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("position: rotation keeps norms") {
  test::Rng random(1);
  for (const RopePairing pairing : kPairings) {
    for (const std::size_t head_dim : {4u, 16u, 24u, 88u}) {
      const std::vector<double> x = random.numbers<double>(head_dim);
      const std::vector<double> y = rotated(x, random.uniform(-50.0, 50.0), random.uniform(-50.0, 50.0),
                                            frequencies_of(head_dim), pairing);
      CHECK(dot(y, y) == doctest::Approx(dot(x, x)).epsilon(1e-14));
      CHECK(y != x);
    }
  }
}

TEST_CASE("position: two rotations are the rotation by the sum") {
  test::Rng random(2);
  for (const RopePairing pairing : kPairings) {
    for (int trial = 0; trial < 20; ++trial) {
      const RopeFrequencies frequencies = frequencies_of(24);
      const std::vector<double> x = random.numbers<double>(24);
      const double ax = random.uniform(-30.0, 30.0), ay = random.uniform(-30.0, 30.0),
                   bx = random.uniform(-30.0, 30.0), by = random.uniform(-30.0, 30.0);
      const std::vector<double> twice =
          rotated(rotated(x, bx, by, frequencies, pairing), ax, ay, frequencies, pairing);
      const std::vector<double> once = rotated(x, ax + bx, ay + by, frequencies, pairing);
      // Angles reach 60 and are rounded to 60 * 2^-53 each; all else is below.
      for (std::size_t c = 0; c < x.size(); ++c) CHECK(std::abs(twice[c] - once[c]) <= 4e-14);
    }
  }
}

TEST_CASE("position: scores depend only on the distance, on both axes") {
  test::Rng random(3);
  for (const RopePairing pairing : kPairings) {
    for (int trial = 0; trial < 20; ++trial) {
      const RopeFrequencies frequencies = frequencies_of(32);
      const std::vector<double> q = random.numbers<double>(32);
      const std::vector<double> k = random.numbers<double>(32);
      const double mx = random.uniform(-20.0, 20.0), my = random.uniform(-20.0, 20.0),
                   nx = random.uniform(-20.0, 20.0), ny = random.uniform(-20.0, 20.0);
      const auto score = [&](double sx, double sy) {
        return dot(rotated(q, mx + sx, my + sy, frequencies, pairing),
                   rotated(k, nx + sx, ny + sy, frequencies, pairing));
      };
      CHECK(std::abs(score(0, 0) - score(random.uniform(-20.0, 20.0), random.uniform(-20.0, 20.0))) <= 1e-12);
      // The rotation by n is the transpose of that by -n, so the score is that of the difference.
      CHECK(std::abs(score(0, 0) - dot(rotated(q, mx - nx, my - ny, frequencies, pairing), k)) <= 1e-12);
    }
  }
}

TEST_CASE("position: a larger grid contains the factors of a smaller one") {
  const RopeFrequencies frequencies = frequencies_of(16);
  const GridSize large{9, 7}, small{4, 5};
  const auto from_large = build_axial_table<float>(grid_coords(large), frequencies);
  const auto from_small = build_axial_table<float>(grid_coords(small), frequencies);
  for (std::size_t row = 0; row < small.rows; ++row) {
    for (std::size_t column = 0; column < small.columns; ++column) {
      for (std::size_t j = 0; j < 8; ++j) {
        CHECK(from_small.factor(row * small.columns + column, j) ==
              from_large.factor(row * large.columns + column, j));
      }
    }
  }
}

TEST_CASE("position: the axial table is the x factors, then the y factors") {
  const GridSize grid{3, 4};
  const RopeFrequencies frequencies = frequencies_of(12);
  const auto x_first = build_axial_table<double>(grid_coords(grid), frequencies);
  const auto y_first =
      build_axial_table<double>(grid_coords(grid), frequencies, {.axis_order = AxisOrder::y_then_x});
  const Tensor<std::complex<double>> all = x_first.to_complex();
  REQUIRE(all.shape() == Shape{12, 6});
  for (std::size_t t = 0; t < 12; ++t) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double frequency = std::pow(100.0, -static_cast<double>(k) / 3.0);
      const std::complex<double> x = std::polar(1.0, static_cast<double>(t % 4) * frequency);
      const std::complex<double> y = std::polar(1.0, static_cast<double>(t / 4) * frequency);
      CHECK(std::abs(x_first.factor(t, k) - x) <= 1e-15);
      CHECK(std::abs(x_first.factor(t, 3 + k) - y) <= 1e-15);
      CHECK(y_first.factor(t, k) == x_first.factor(t, 3 + k));
      CHECK(y_first.factor(t, 3 + k) == x_first.factor(t, k));
      CHECK(all.data()[t * 6 + k] == x_first.factor(t, k));
    }
  }
}

TEST_CASE("position: the table of a line is e^(i position frequency)") {
  const RopeFrequencies frequencies = RopeFrequencies::from_theta(3, 10000.0);
  const std::vector<double> positions{0.0, 1.0, 2.5, -7.0, 1000.0};
  const auto table = build_line_table<double>(positions, frequencies);
  REQUIRE(table.num_patches() == positions.size());
  REQUIRE(table.num_angles() == 3);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double angle = positions[i] * std::pow(10000.0, -static_cast<double>(k) / 3.0);
      CHECK(std::abs(table.factor(i, k) - std::polar(1.0, angle)) < 1e-12);
    }
  }
}

TEST_CASE("position: rotation is the complex product in both pairings, prefix tokens stay") {
  test::Rng random(4);
  constexpr std::size_t kPrefix = 2, kHeads = 3, kDim = 8;
  const auto table_of = [](RopePairing pairing) {
    return build_axial_table<double>(grid_coords({2, 3}), frequencies_of(kDim), {.pairing = pairing});
  };
  for (const RopePairing pairing : kPairings) {
    const RopeTable<double> table = table_of(pairing);
    const Tensor<double> before = random.tensor<double>(Shape{2, kPrefix + 6, kHeads, kDim});
    Tensor<double> after(before.shape());
    std::copy(before.flat().begin(), before.flat().end(), after.flat().begin());
    rotate(after, table, kPrefix);
    for (std::size_t r = 0; r < before.view().num_rows(); ++r) {
      const std::size_t token = r / kHeads % (kPrefix + 6);
      const double* const x = before.view().row(r);
      const double* const y = after.view().row(r);
      for (std::size_t j = 0; j < kDim / 2; ++j) {
        const std::size_t p = pairing == RopePairing::neighbors ? 2 * j : j;
        const std::size_t q = pairing == RopePairing::neighbors ? 2 * j + 1 : j + kDim / 2;
        std::complex<double> expected(x[p], x[q]);
        if (token >= kPrefix) expected *= table.factor(token - kPrefix, j);
        CHECK(std::abs(std::complex<double>(y[p], y[q]) - expected) <= 1e-15);
      }
    }
  }
}

TEST_CASE("position: mixed factors rotate every head by both axes at once") {
  test::Rng random(5);
  const Tensor<double> numbers = random.tensor<double>(Shape{2, 3, 2, 4});  // depth 3, 2 heads of 8 channels
  const MixedFrequencies frequencies(numbers.view());
  const GridCoords coords = grid_coords({3, 5});
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const auto table = build_mixed_table<double>(coords, frequencies, layer);
    CHECK(table.factors().head_stride == 15 * 4);
    Tensor<double> x = random.tensor<double>(Shape{1, 16, 2, 8});
    Tensor<double> y(x.shape());
    std::copy(x.flat().begin(), x.flat().end(), y.flat().begin());
    rotate(y, table, 1);
    for (std::size_t t = 0; t < 15; ++t) {
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t j = 0; j < 4; ++j) {
          const double f_x = numbers.data()[(layer * 2 + h) * 4 + j];
          const double f_y = numbers.data()[((3 + layer) * 2 + h) * 4 + j];
          const double angle = static_cast<double>(t % 5) * f_x + static_cast<double>(t / 5) * f_y;
          CHECK(std::abs(table.factor(t, j, h) - std::polar(1.0, angle)) <= 2e-15);
          const double* const from = x.view().row((t + 1) * 2 + h) + 2 * j;
          const double* const to = y.view().row((t + 1) * 2 + h) + 2 * j;
          const auto expected = std::complex<double>(from[0], from[1]) * std::polar(1.0, angle);
          CHECK(std::abs(std::complex<double>(to[0], to[1]) - expected) <= 4e-15);
        }
      }
    }
  }
  CHECK_THROWS_AS(mixed_angles(coords, frequencies, 3), Error);
}

TEST_CASE("position: with an angle per channel a table counts angles") {
  test::Rng random(8);
  constexpr std::size_t kHeads = 2, kPatches = 3, kDim = 6;
  const Tensor<double> angles = random.tensor<double>(Shape{kHeads, kPatches, kDim}, -3.0, 3.0);
  for (const RopePairing pairing : kPairings) {
    const RopeTable<double> table(angles, pairing, RopeAngles::per_channel);
    CHECK(table.num_angles() == kDim);
    CHECK(table.num_pairs() == kDim / 2);
    CHECK(table.factors().num_angles() == kDim);
    CHECK(table.factors().head_stride == kPatches * kDim);
    Tensor<double> x = random.tensor<double>(Shape{1, 1 + kPatches, kHeads, kDim}), y(x.shape());
    std::copy(x.flat().begin(), x.flat().end(), y.flat().begin());
    rotate(y, table, 1);
    const bool halves = pairing == RopePairing::halves;
    for (std::size_t patch = 0; patch < kPatches; ++patch) {
      for (std::size_t head = 0; head < kHeads; ++head) {
        const double* const from = x.view().row((1 + patch) * kHeads + head);
        const double* const to = y.view().row((1 + patch) * kHeads + head);
        for (std::size_t j = 0; j < kDim / 2; ++j) {
          const std::size_t p = halves ? j : 2 * j, q = halves ? j + kDim / 2 : 2 * j + 1;
          const auto angle = [&](std::size_t channel) {
            return angles.data()[(head * kPatches + patch) * kDim + channel];
          };
          CHECK(table.factor(patch, p, head) == std::complex(std::cos(angle(p)), std::sin(angle(p))));
          CHECK(to[p] == from[p] * std::cos(angle(p)) - from[q] * std::sin(angle(p)));
          CHECK(to[q] == from[q] * std::cos(angle(q)) + from[p] * std::sin(angle(q)));
        }
      }
    }
  }
  CHECK_ERROR(ErrorKind::argument, ("5 channels"),
              RopeTable<float>(Tensor<double>(Shape{2, 5}), RopePairing::neighbors, RopeAngles::per_channel));
}

TEST_CASE("position: every kind of encoding is vectors of frequencies") {
  const GridCoords coords = grid_coords({2, 3}, {.offset = 0.5});
  const RopeFrequencies x({1.0, 0.25}), y({2.0, 0.5});
  const FrequencyVectors axial = FrequencyVectors::axial(x, y, AxisOrder::y_then_x);
  const std::vector<FrequencyVector> expected{{.y = 2.0}, {.y = 0.5}, {.x = 1.0}, {.x = 0.25}};
  CHECK(std::ranges::equal(axial.of(0, 0), expected));
  const Tensor<double> by_vectors = rope_angles(coords, axial);
  const Tensor<double> by_axes = axial_angles(coords, x, y, AxisOrder::y_then_x);
  CHECK(by_vectors.shape() == Shape{6, 4});
  CHECK(std::ranges::equal(by_vectors.flat(), by_axes.flat()));
  CHECK(by_vectors.data()[5 * 4] == 1.5 * 2.0);
  CHECK(by_vectors.data()[5 * 4 + 2] == 2.5 * 1.0);

  const FrequencyVectors volume = FrequencyVectors::volume(RopeFrequencies({1.0, 0.1}), 13);
  const GridCoords clip = clip_coords(2, {2, 3});
  const Tensor<double> of_clip = rope_angles(clip, volume);
  REQUIRE(of_clip.shape() == Shape{12, 13});
  const double* const last = of_clip.view().row(11);  // frame 1, row 1, column 2
  const std::vector<double> of_channels{1, 0.1, 1, 0.1, 1, 0.1, 1, 0.1, 2, 0.2, 2, 0.2, 0};
  CHECK(std::equal(of_channels.begin(), of_channels.end(), last));
  CHECK_THROWS_AS(FrequencyVectors::volume(RopeFrequencies({1.0, 0.1}), 11), Error);
  CHECK_THROWS_AS(FrequencyVectors(2, 2, {{.x = 1.0}}), Error);
  CHECK_THROWS_AS(axial.of(1, 0), Error);
}

TEST_CASE("position: float factors are the doubles rounded once") {
  const GridCoords coords = grid_coords({5, 6});
  const auto in_double = build_axial_table<double>(coords, frequencies_of(32));
  const auto in_float = build_axial_table<float>(coords, frequencies_of(32));
  for (std::size_t i = 0; i < in_double.cos().num_elements(); ++i) {
    CHECK(in_float.cos().data()[i] == static_cast<float>(in_double.cos().data()[i]));
    CHECK(in_float.sin().data()[i] == static_cast<float>(in_double.sin().data()[i]));
  }
}

TEST_CASE("position: vectors that do not fit the factors are an error with both shapes") {
  const auto table = build_axial_table<float>(grid_coords({2, 3}), frequencies_of(8));
  Tensor<float> fits(Shape{1, 7, 2, 8}), short_by_one(Shape{1, 6, 2, 8}), narrow(Shape{1, 7, 4}),
      flat(Shape{7, 8});
  rotate(fits, table, 1);
  CHECK_ERROR(ErrorKind::argument, ("(1, 6, 2, 8)", "(6, 4)"), rotate(short_by_one, table, 1));
  CHECK_ERROR(ErrorKind::argument, ("(1, 7, 4)", "(6, 4)"), rotate(narrow, table, 1));
  CHECK_ERROR(ErrorKind::argument, ("(7, 8)", "(6, 4)"), rotate(flat, table, 1));

  test::Rng random(6);
  const Tensor<float> numbers = random.tensor<float>(Shape{2, 1, 3, 4});
  const auto mixed = build_mixed_table<float>(grid_coords({2, 3}), MixedFrequencies(numbers.view()), 0);
  // two heads, table of three
  CHECK_ERROR(ErrorKind::argument, ("(1, 7, 2, 8)", "(3, 6, 4)"), rotate(fits, mixed, 1));
  CHECK_THROWS_AS(table.factor(6, 0), Error);
  CHECK_THROWS_AS(RopeTable<float>(TensorView<const double>(), RopePairing::halves), Error);
  CHECK_ERROR(ErrorKind::argument, ("(3, 4) without data"),
              RopeTable<float>(TensorView<const double>(nullptr, Shape{3, 4}), RopePairing::halves));
}

TEST_CASE("position: a table that was moved from is an error, not a rotation by nothing") {
  auto table = build_axial_table<float>(grid_coords({2, 3}), frequencies_of(8));
  const RopeTable<float> kept = std::move(table);
  Tensor<float> x(Shape{1, 6, 8});
  rotate(x, kept);
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK_ERROR(ErrorKind::argument, ("moved from"), rotate(x, table));
  CHECK_ERROR(ErrorKind::argument, ("moved from"), attention(x, x, x, table, 0, {.num_heads = 1}));
  CHECK_ERROR(ErrorKind::argument, ("moved from"), static_cast<void>(table.factor(0, 0)));
  CHECK_ERROR(ErrorKind::argument, ("moved from"), table.to_complex());
  // NOLINTEND(bugprone-use-after-move)
  RopeFactors half = kept;
  half.sin = nullptr;
  CHECK_ERROR(ErrorKind::argument, ("without data"), attention(x, x, x, half, 0, {.num_heads = 1}));
}

TEST_CASE("position: empty factors rotate nothing") {
  test::Rng random(7);
  Tensor<float> x = random.tensor<float>(Shape{1, 3, 4});
  const std::vector<float> before(x.flat().begin(), x.flat().end());
  rotate(x, RopeFactors{});
  CHECK(std::equal(before.begin(), before.end(), x.data()));
}

}  // namespace vit::position
