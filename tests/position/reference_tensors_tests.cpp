// Every tensor of the reference values of fixtures/positions: float64, grid of 3 rows x 5 columns, heads of
// 16 channels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/base/check.h"
#include "vit/position/rope.h"
#include "vit/position/tables.h"

namespace vit::position {
namespace {

constexpr GridSize kGrid{3, 5};
constexpr std::size_t kHeadDim = 16;
constexpr std::size_t kRadius = 3;
constexpr double kFloatRounding = 0x1p-24;  // half an ulp, relative

constexpr const char* kReference = "fixtures/positions/positions.safetensors";  // of the shared folder

double largest_magnitude(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// 1e-12 relative; values near zero get 16 ulps of the tensor's largest, since they are left over from
// cancellation.
void check_double(const std::string& name, std::span<const double> found, std::span<const double> expected) {
  CAPTURE(name);
  REQUIRE(found.size() == expected.size());
  const double floor = 16.0 * std::numeric_limits<double>::epsilon() * largest_magnitude(expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(std::abs(found[i] - expected[i]) <= 1e-12 * std::abs(expected[i]) + floor);
  }
}

// Values computed in double and rounded once.
void check_rounded(const std::string& name, std::span<const float> found, std::span<const double> expected) {
  CAPTURE(name);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) <=
          kFloatRounding * std::abs(expected[i]) + 1e-15);
  }
}

Shape shape_of(const test::FixtureTensors& file, const std::string& name) {
  return Shape(file.shape(name));
}

template <typename T>
Tensor<T> load(const test::FixtureTensors& file, const std::string& name) {
  Tensor<T> tensor(shape_of(file, name));
  const std::vector<double> values = file.doubles(name);
  std::transform(values.begin(), values.end(), tensor.data(),
                 [](double value) { return static_cast<T>(value); });
  return tensor;
}

RopeFrequencies axial_frequencies(double theta) {
  return RopeFrequencies::from_theta(num_axial_frequencies(kHeadDim), theta);
}
RopeFrequencies frequencies_1d(double theta) {
  return RopeFrequencies::from_theta(num_frequencies_1d(kHeadDim), theta);
}

struct Rotation {
  std::string name;
  Tensor<double> angles;
  RopePairing pairing;
};

std::vector<Rotation> all_rotations() {
  const std::vector<double> line = coords_1d(num_patches(kGrid));
  const GridCoords coords = grid_coords(kGrid);
  std::vector<Rotation> rotations;
  rotations.push_back({"rope1d", angles_1d(line, frequencies_1d(1e4)), RopePairing::neighbors});
  rotations.push_back(
      {"axial", axial_angles(coords, axial_frequencies(100.0), AxisOrder::x_then_y), RopePairing::neighbors});
  rotations.push_back({"halves_exp_pi",
                       angles_1d(line, RopeFrequencies::exp_pi(num_frequencies_1d(kHeadDim))),
                       RopePairing::halves});
  rotations.push_back({"halves_axial", axial_angles(coords, axial_frequencies(100.0), AxisOrder::x_then_y),
                       RopePairing::halves});
  return rotations;
}

// x (rows, C) times the transpose of w (C, C)
std::vector<double> project(std::span<const double> x, std::span<const double> w, std::size_t num_channels) {
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / num_channels * num_channels;
    for (std::size_t c = 0; c < num_channels; ++c)
      out[i] += x[row + c] * w[i % num_channels * num_channels + c];
  }
  return out;
}

}  // namespace

TEST_CASE("position: reference coordinates and angles") {
  SKIP_WITHOUT_SHARED(kReference);
  const test::FixtureTensors file(test::shared_path(kReference));
  const GridCoords coords = grid_coords(kGrid);
  const std::vector<double> line = coords_1d(num_patches(kGrid));
  check_double("axial.t_x", coords.t_x, file.doubles("axial.t_x"));
  check_double("axial.t_y", coords.t_y, file.doubles("axial.t_y"));
  const auto check_angles = [&](const std::string& name, const Tensor<double>& angles) {
    CHECK(angles.shape() == shape_of(file, name));
    check_double(name, angles.flat(), file.doubles(name));
  };
  check_angles("rope1d.angles.theta10000", angles_1d(line, frequencies_1d(1e4)));
  check_angles("rope1d.angles.theta1e+06", angles_1d(line, frequencies_1d(1e6)));
  check_angles("rope1d.angles.exp_pi",
               angles_1d(line, RopeFrequencies::exp_pi(num_frequencies_1d(kHeadDim))));
  for (const auto& [suffix, theta] : {std::pair("theta100", 100.0), std::pair("theta10000", 1e4)}) {
    check_angles(text("axial.angles.", suffix),
                 axial_angles(coords, axial_frequencies(theta), AxisOrder::x_then_y));
    const auto table = build_axial_table<double>(coords, axial_frequencies(theta));
    const auto rounded = build_axial_table<float>(coords, axial_frequencies(theta));
    const std::vector<double> cos = file.doubles(text("axial.cos.", suffix));
    const std::vector<double> sin = file.doubles(text("axial.sin.", suffix));
    check_double("cos", table.cos().flat(), cos);
    check_double("sin", table.sin().flat(), sin);
    check_rounded("cos", rounded.cos().flat(), cos);
    check_rounded("sin", rounded.sin().flat(), sin);
  }
}

TEST_CASE("position: reference rotations of (B, L, d) and (B, L, H, d) in double and float") {
  SKIP_WITHOUT_SHARED(kReference);
  const test::FixtureTensors file(test::shared_path(kReference));
  for (const Rotation& rotation : all_rotations()) {
    for (const std::string input : {"q", "k", "q4", "k4"}) {
      const std::string name = "rotated." + rotation.name + "." + input;
      CAPTURE(name);
      const std::vector<double> expected = file.doubles(name);
      Tensor<double> x = load<double>(file, input);
      Tensor<float> rounded = load<float>(file, input);
      rotate(x, RopeTable<double>(rotation.angles, rotation.pairing));
      rotate(rounded, RopeTable<float>(rotation.angles, rotation.pairing));
      check_double(name, x.flat(), expected);
      // p cos - q sin: inputs, factors, products and the sum are each rounded once. |p| + |q| <= sqrt(2)
      // times the norm of the pair, which is that of the rotated pair.
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t channel = i % kHeadDim;
        const std::size_t partner = rotation.pairing == RopePairing::neighbors
                                        ? i ^ 1u
                                        : i - channel + (channel + kHeadDim / 2) % kHeadDim;
        const double norm = std::hypot(expected[i], expected[partner]);
        const double found = rounded.data()[i];
        CHECK(std::abs(found - expected[i]) <= 4.0 * kFloatRounding * std::sqrt(2.0) * norm);
      }
    }
  }
}

TEST_CASE("position: reference sinusoidal rows and the NEZHA table") {
  SKIP_WITHOUT_SHARED(kReference);
  const test::FixtureTensors file(test::shared_path(kReference));
  const std::size_t num_tokens = num_patches(kGrid);
  check_double("sinusoidal1d", sinusoidal_1d<double>(num_tokens, kHeadDim).flat(),
               file.doubles("sinusoidal1d"));
  check_double("sinusoidal2d", sinusoidal_2d<double>(kGrid, kHeadDim).flat(), file.doubles("sinusoidal2d"));
  check_double("nezha", nezha_table<double>(kRadius, kHeadDim).flat(), file.doubles("relative.nezha_table"));
  check_rounded("sinusoidal1d", sinusoidal_1d<float>(num_tokens, kHeadDim).flat(),
                file.doubles("sinusoidal1d"));
  check_rounded("sinusoidal2d", sinusoidal_2d<float>(kGrid, kHeadDim).flat(), file.doubles("sinusoidal2d"));
  check_rounded("nezha", nezha_table<float>(kRadius, kHeadDim).flat(), file.doubles("relative.nezha_table"));
}

TEST_CASE("position: reference relative attention in double and float") {
  SKIP_WITHOUT_SHARED(kReference);
  const test::FixtureTensors file(test::shared_path(kReference));
  const std::vector<double> probabilities = file.doubles("relative.probabilities");
  const std::vector<double> out = file.doubles("relative.out");
  const auto run = [&]<typename T>(T) {
    const Tensor<T> q = load<T>(file, "relative.q"), k = load<T>(file, "relative.k");
    const Tensor<T> v = load<T>(file, "relative.v");
    const Tensor<T> keys = load<T>(file, "relative.table_k"), values = load<T>(file, "relative.table_v");
    return relative_attention<T>(q.view(), k.view(), v.view(),
                                 {.keys = keys.view(), .values = values.view()});
  };
  const auto exact = run(double{});
  CHECK(exact.out.shape() == shape_of(file, "relative.out"));
  CHECK(exact.probabilities.shape() == shape_of(file, "relative.probabilities"));
  check_double("relative.probabilities", exact.probabilities.flat(), probabilities);
  check_double("relative.out", exact.out.flat(), out);

  // Sums are in double, so only the inputs' rounding counts. It moves a score by at most 3 u sum |q| (|k| +
  // |a|) / sqrt(d), which 3 u * 16 * |q| max (|k| + |a|) max / 4 bounds, a probability by twice that,
  // relative, and an output by the same share of the largest value, and by the rounding of the values
  // themselves and of the result.
  const double score =
      3.0 * kFloatRounding * 4.0 * largest_magnitude(file.doubles("relative.q")) *
      (largest_magnitude(file.doubles("relative.k")) + largest_magnitude(file.doubles("relative.table_k")));
  const double largest_value =
      largest_magnitude(file.doubles("relative.v")) + largest_magnitude(file.doubles("relative.table_v"));
  const auto rounded = run(float{});
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const double found = rounded.probabilities.data()[i];
    CHECK(std::abs(found - probabilities[i]) <= (2.0 * score + kFloatRounding) * probabilities[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double found = rounded.out.data()[i];
    CHECK(std::abs(found - out[i]) <= (2.0 * score + 2.0 * kFloatRounding) * largest_value);
  }
}

TEST_CASE("position: reference multi-head attention with axial rotation") {
  SKIP_WITHOUT_SHARED(kReference);
  const test::FixtureTensors file(test::shared_path(kReference));
  const Shape shape = shape_of(file, "attention.x");  // (B, L, C)
  const std::size_t num_tokens = shape[1], num_channels = shape[2], num_heads = num_channels / kHeadDim;
  const std::vector<double> x = file.doubles("attention.x");
  std::vector<double> q = project(x, file.doubles("attention.wq"), num_channels);
  std::vector<double> k = project(x, file.doubles("attention.wk"), num_channels);
  const std::vector<double> v = project(x, file.doubles("attention.wv"), num_channels);
  const Shape by_head{shape[0], num_tokens, num_heads, kHeadDim};
  const auto table = build_axial_table<double>(grid_coords(kGrid), axial_frequencies(100.0));
  rotate(TensorView<double>(q.data(), by_head), table);
  rotate(TensorView<double>(k.data(), by_head), table);

  std::vector<double> probabilities(shape[0] * num_heads * num_tokens * num_tokens);
  std::vector<double> heads(x.size());
  for (std::size_t b = 0; b < shape[0]; ++b) {
    for (std::size_t h = 0; h < num_heads; ++h) {
      const auto vector_at = [&](std::size_t token) {
        return (b * num_tokens + token) * num_channels + h * kHeadDim;
      };
      for (std::size_t i = 0; i < num_tokens; ++i) {
        double* const p = probabilities.data() + ((b * num_heads + h) * num_tokens + i) * num_tokens;
        double sum = 0.0;
        for (std::size_t j = 0; j < num_tokens; ++j) {
          double score = 0.0;
          for (std::size_t c = 0; c < kHeadDim; ++c) score += q[vector_at(i) + c] * k[vector_at(j) + c];
          sum += p[j] = std::exp(score / std::sqrt(static_cast<double>(kHeadDim)));
        }
        for (std::size_t j = 0; j < num_tokens; ++j) {
          p[j] /= sum;
          for (std::size_t c = 0; c < kHeadDim; ++c) heads[vector_at(i) + c] += p[j] * v[vector_at(j) + c];
        }
      }
    }
  }
  check_double("attention.probabilities", probabilities, file.doubles("attention.probabilities"));
  check_double("attention.out", project(heads, file.doubles("attention.wo"), num_channels),
               file.doubles("attention.out"));
}

}  // namespace vit::position
