// The conventions of the library as data, compared with the conformance vectors of data/positions: what `vit
// rope` writes and recognizes is what the formulas say. Letters: T = tokens, N = patches, H = heads, d =
// channels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/conformance_vectors.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope.h"

namespace vit::position {
namespace {

using test::ConformanceCase;

/// The convention with the reference grid, offset and window of a case; no name if the library has none.
RopeConvention convention_of(const ConformanceCase& c) {
  const RopeConvention* const found = find_rope_convention(c.name);
  if (found == nullptr) return {};
  RopeConvention convention = *found;
  if (c.axes == 1) return convention;
  convention.offset = c.offset;
  if (c.reference.rows != 0) convention.reference = c.reference;
  convention.window = c.from_corner ? c.window : 0;
  return convention;
}

GridCoords coords_of(const ConformanceCase& c, const RopeConvention& convention) {
  if (c.axes == 1) return coordinates(convention, {1, c.length});
  if (c.axes == 3) return coordinates(convention, c.grid, c.frames);
  GridCoords coords = coordinates(convention, c.grid);
  const GridCoords one = coords;
  for (std::size_t frame = 1; frame < c.frames; ++frame) {  // each frame is an image
    coords.t_x.insert(coords.t_x.end(), one.t_x.begin(), one.t_x.end());
    coords.t_y.insert(coords.t_y.end(), one.t_y.begin(), one.t_y.end());
  }
  if (c.frames != 1) return coords;
  const std::vector<std::int64_t> patches = c.integers("patches");
  return reordered(coords, std::vector<std::uint32_t>(patches.begin(), patches.end()));
}

FrequencyVectors vectors_of(const ConformanceCase& c, const RopeConvention& convention) {
  if (convention.kind != ConventionKind::mixed) return frequency_vectors(convention, c.head_dim, c.heads);
  const std::vector<double> learned = c.doubles("normal_form");
  std::vector<FrequencyVector> vectors;
  for (std::size_t i = 0; i < learned.size(); i += 2)
    vectors.push_back({.x = learned[i], .y = learned[i + 1]});
  return FrequencyVectors(1, c.heads, std::move(vectors));
}

/// (N, A) or (H, N, A), preceded by those of the class token if it has some.
Tensor<double> angles_of(const ConformanceCase& c, const RopeConvention& convention) {
  Tensor<double> angles = rope_angles(coords_of(c, convention), vectors_of(c, convention));
  if (!convention.class_angles) return angles;
  const std::vector<double> first = c.doubles("class_angles");
  Tensor<double> all(Shape{angles.dim(0) + 1, angles.dim(1)});
  std::copy(first.begin(), first.end(), all.data());
  std::copy(angles.data(), angles.data() + angles.num_elements(), all.data() + first.size());
  return all;
}

/// x (.., d) becomes B x, or B^T x.
void multiply(Tensor<double>& x, const std::vector<double>& basis, bool transposed) {
  const std::size_t d = x.shape().last();
  for (std::size_t row = 0; row < x.num_elements() / d; ++row) {
    std::vector<double> out(d);
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j)
        out[i] += basis[transposed ? j * d + i : i * d + j] * x.data()[row * d + j];
    std::ranges::copy(out, x.data() + row * d);
  }
}

/// Largest error of queries or keys (H, T, d) rotated by the library.
double rotated_error(const ConformanceCase& c, const RopeConvention& convention, const std::string& name) {
  const std::vector<double> x = c.doubles(name), expected = c.doubles(name + "_rotated");
  const std::size_t d = c.head_dim, tokens = x.size() / d / c.heads, rotated = tokens - c.suffix;
  Tensor<double> found(Shape{1, rotated, c.heads, d});
  for (std::size_t h = 0; h < c.heads; ++h) {
    for (std::size_t t = 0; t < rotated; ++t)
      std::copy_n(x.data() + (h * tokens + t) * d, d, found.data() + (t * c.heads + h) * d);
  }
  const Tensor<double> angles = angles_of(c, convention);
  const std::vector<double> basis = c.has("basis") ? c.doubles("basis") : std::vector<double>{};
  if (!basis.empty()) multiply(found, basis, false);
  rotate_pairs(found.view(), angles.view(), channel_pairs(convention, d), convention.angles,
               c.prefix - (convention.class_angles ? 1 : 0));
  if (!basis.empty()) multiply(found, basis, true);
  double worst = 0.0;
  for (std::size_t h = 0; h < c.heads; ++h) {
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = 0; i < d; ++i) {
        const std::size_t at = (h * tokens + t) * d + i;
        const double value = t < rotated ? found.data()[(t * c.heads + h) * d + i] : x[at];
        worst = std::max(worst, std::abs(value - expected[at]));
      }
    }
  }
  return worst;
}

/// A wrong choice.
struct Mistake {
  double sign = 1.0;
  double offset = 0.0;
  bool swaps_axes = false;
};

/// Rotated by the frequency vectors and pairs of the file, nothing else: the common form of every rotary
/// encoding.
double normal_form_error(const ConformanceCase& c, const Mistake& mistake) {
  const std::vector<double> stored = c.doubles("normal_form"), where = c.doubles("coordinates");
  std::vector<FrequencyVector> vectors;
  for (std::size_t i = 0; i < stored.size(); i += 3)
    vectors.push_back({.x = stored[i], .y = stored[i + 1], .t = stored[i + 2]});
  GridCoords coords;
  for (std::size_t n = 0; n < where.size(); n += 3) {
    coords.t_x.push_back(where[n + (mistake.swaps_axes ? 1 : 0)] + mistake.offset);
    coords.t_y.push_back(where[n + (mistake.swaps_axes ? 0 : 1)] + mistake.offset);
    coords.t_t.push_back(where[n + 2]);
  }
  Tensor<double> angles = rope_angles(coords, FrequencyVectors(std::move(vectors)));
  for (double& angle : angles.flat()) angle *= mistake.sign;
  std::vector<ChannelPair> pairs;
  const std::vector<std::int64_t> channels = c.integers("pairs");
  for (std::size_t i = 0; i < channels.size(); i += 2)
    pairs.push_back({static_cast<std::size_t>(channels[i]), static_cast<std::size_t>(channels[i + 1])});
  const bool per_channel = angles.dim(1) == c.head_dim;
  const std::vector<double> x = c.doubles("q"), expected = c.doubles("q_rotated");
  const std::size_t rotated = x.size() / c.head_dim - c.suffix;
  Tensor<double> found(Shape{1, rotated, 1, c.head_dim});
  std::copy_n(x.data(), rotated * c.head_dim, found.data());
  rotate_pairs(found.view(), angles.view(), pairs,
               per_channel ? RopeAngles::per_channel : RopeAngles::per_pair, c.prefix);
  double worst = 0.0;
  for (std::size_t i = 0; i < found.num_elements(); ++i)
    worst = std::max(worst, std::abs(found.data()[i] - expected[i]));
  return worst;
}

}  // namespace

TEST_CASE(
    "position: encodings of time, row and column agree with the conformance vectors in their common form") {
  std::size_t num_held = 0;
  for (const ConformanceCase& c : test::conformance_cases()) {
    if (c.axes != 3) continue;
    CAPTURE(c.name);
    CAPTURE(c.title);
    num_held += 1;
    CHECK(normal_form_error(c, {}) <= 4.0 * (3.0 + 8.0 * 24.0) * 0x1p-53);
    CHECK(normal_form_error(c, {.sign = -1.0}) > 0.01);
    CHECK(normal_form_error(c, {.offset = 1.0}) > 0.01);
    CHECK(normal_form_error(c, {.swaps_axes = true}) > 0.01);
  }
  CHECK(num_held >= 6);
}

TEST_CASE("position: the conventions of the library agree with the conformance vectors") {
  std::vector<std::string> held;
  for (const ConformanceCase& c : test::conformance_cases()) {
    const RopeConvention convention = convention_of(c);
    REQUIRE_MESSAGE(!convention.name.empty(), c.name);
    CAPTURE(c.name);
    CAPTURE(c.title);
    held.push_back(convention.name);
    // Angles up to 24 err by 8 roundings on either side, channels are below 2 and a rotation rounds thrice.
    // Those of golden gate in N dimensions are larger.
    double largest = 24.0;
    for (const double angle : c.doubles("angles")) largest = std::max(largest, std::abs(angle));
    const double bound = 4.0 * (3.0 + 8.0 * largest) * 0x1p-53;
    CHECK(rotated_error(c, convention, "q") <= bound);
    CHECK(rotated_error(c, convention, "k") <= bound);

    RopeConvention other = convention;
    other.channels =
        convention.channels == PairLayout::neighbors ? PairLayout::halves : PairLayout::neighbors;
    if (convention.kind != ConventionKind::volume) CHECK(rotated_error(c, other, "q") > 0.01);
    const PatchCoordinates rule = convention.coordinates;
    const bool has_offset = rule == PatchCoordinates::index || rule == PatchCoordinates::centered ||
                            rule == PatchCoordinates::scaled_to_reference;
    other = convention;
    if (has_offset) {
      other.offset += 1.0;
    } else {
      other.coordinates = PatchCoordinates::centered;
    }
    CHECK(rotated_error(c, other, "q") > 0.01);
    if (convention.kind != ConventionKind::axial) continue;
    other = convention;
    other.order = convention.order == AxisOrder::x_then_y ? AxisOrder::y_then_x : AxisOrder::x_then_y;
    CHECK(rotated_error(c, other, "q") > 0.01);
    other = convention;
    other.factor = -convention.factor;
    CHECK(rotated_error(c, other, "q") > 0.01);
    other = convention;
    other.theta *= 1.5;
    other.max_frequency *= 1.5;
    CHECK(rotated_error(c, other, "q") > 0.01);
  }
  for (const RopeConvention& convention : rope_conventions()) {
    CAPTURE(convention.name);
    CHECK(std::ranges::find(held, convention.name) != held.end());
  }
}

}  // namespace vit::position
