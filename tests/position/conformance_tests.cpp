// The conformance vectors of data/positions: every published convention in float64, computed by a script from
// formulas and without this library. The public functions agree with them in the rounding of double and
// float, and a mistake in any choice is found by them. Letters: T = tokens, N = patches, H = heads, d =
// channels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/conformance_vectors.h"
#include "vit/position/rope.h"
#include "vit/position/tables.h"
#include "vit/position/windows.h"

namespace vit::position {
namespace {

using test::ConformanceCase;

constexpr double kDouble = 0x1p-53;  // unit roundoff
constexpr double kFloat = 0x1p-24;

/// A wrong choice, of which each convention must differ visibly.
struct Mistake {
  const char* name = "none";
  double sign = 1.0;
  double offset = 0.0;
  double theta_factor = 1.0;
  bool swaps_coordinates = false;
  bool swaps_order = false;
  bool swaps_pairing = false;
  bool one_late = false;  // each token takes the angles of the one before it
};

GridCoords library_coords(const ConformanceCase& c, const Mistake& mistake) {
  CoordinateOptions options{.offset = c.offset + mistake.offset, .reference = c.reference};
  if (c.coordinates == "scaled_to_reference") options.rule = CoordinateRule::scaled_to_reference;
  if (c.coordinates == "centered") options.rule = CoordinateRule::centered;
  const bool is_of_library = options.rule != CoordinateRule::index || c.coordinates == "index";
  const std::vector<double> stored = c.doubles("coordinates");
  const std::size_t axes = c.axes;
  const GridCoords raster = grid_coords(c.from_corner ? GridSize{c.window, c.window} : c.grid, options);
  std::vector<std::int64_t> order = c.integers("patches");
  if (c.window != 0) {  // the order is the library's
    const WindowOrder windows = order_by_windows(c.grid, c.window);
    order.assign(windows.patches.begin(), windows.patches.end());
  }
  GridCoords coords;
  for (std::size_t n = 0; n < stored.size() / axes; ++n) {
    const auto patch = static_cast<std::size_t>(order.at(n));
    const std::size_t at = c.from_corner ? n % raster.size() : patch;
    coords.t_x.push_back(is_of_library ? raster.t_x.at(at) : stored[n * axes] + mistake.offset);
    coords.t_y.push_back(is_of_library ? raster.t_y.at(at) : stored[n * axes + 1] + mistake.offset);
  }
  if (mistake.swaps_coordinates) std::swap(coords.t_x, coords.t_y);
  return coords;
}

/// (N, d / 2) or (H, N, d / 2) by the function of the library that the convention names.
Tensor<double> library_angles(const ConformanceCase& c, const Mistake& mistake) {
  const std::size_t per_axis = c.head_dim / 4;
  if (c.axes == 1) {
    const std::vector<double> line = coords_1d(c.length, mistake.offset);
    return angles_1d(line, c.name == "rope-1d"
                               ? RopeFrequencies::from_theta(c.head_dim / 2, 1e4 * mistake.theta_factor)
                               : RopeFrequencies::exp_pi(c.head_dim / 2).scaled(mistake.theta_factor));
  }
  const GridCoords coords = library_coords(c, mistake);
  const bool x_first = (c.axis_order == "x_then_y") != mistake.swaps_order;
  const AxisOrder order = x_first ? AxisOrder::x_then_y : AxisOrder::y_then_x;
  if (c.max_frequency != 0.0) {
    const auto bands = RopeFrequencies::pixel_bands(per_axis, c.max_frequency * mistake.theta_factor);
    return axial_angles(coords, bands, order);
  }
  if (c.is_axial) {
    const double theta = c.theta * mistake.theta_factor;
    const auto first = RopeFrequencies::from_theta(per_axis, theta).scaled(c.angle_scale);
    const auto second = first.scaled(std::pow(theta, -c.second_axis_shift / static_cast<double>(per_axis)));
    return axial_angles(coords, x_first ? first : second, x_first ? second : first, order);
  }
  // (H, pairs, 2) or (pairs, 2) -> (2, 1, H, pairs)
  const std::vector<double> stored = c.doubles("normal_form");
  const std::vector<std::size_t> shape = c.shape("normal_form");
  const std::size_t heads = shape.size() == 3 ? shape[0] : 1, pairs = shape[shape.size() - 2];
  Tensor<double> rates(Shape{2, 1, heads, pairs});
  for (std::size_t i = 0; i < heads * pairs; ++i) {
    rates.data()[i] = stored[2 * i] * mistake.theta_factor;
    rates.data()[heads * pairs + i] = stored[2 * i + 1] * mistake.theta_factor;
  }
  return mixed_angles(coords, MixedFrequencies(std::as_const(rates).view()), 0,
                      mistake.swaps_order ? AxisOrder::y_then_x : AxisOrder::x_then_y);
}

/// For each channel in the order of `pairing` the stored one, as the library permutes rows of q and k while
/// it loads layouts that are neither neighbors nor halves (position/README.md).
std::vector<std::size_t> stored_channels(const std::string& layout, std::size_t d) {
  std::vector<std::size_t> stored(d);
  const std::size_t quarter = d / 4;
  for (std::size_t i = 0; i < d; ++i) {
    const std::size_t pair = i / 2, block = i / quarter;
    stored[i] = i;
    if (layout == "alternating") stored[i] = 2 * (2 * (pair % quarter) + pair / quarter) + i % 2;
    if (layout == "halves_by_axis" && block == 1) stored[i] = i + quarter;
    if (layout == "halves_by_axis" && block == 2) stored[i] = i - quarter;
  }
  return stored;
}

/// The rows of `matrix` (d, d), or of its transpose, applied to x.
std::vector<double> in_basis(const std::vector<double>& matrix, bool transposed,
                             const std::vector<double>& x) {
  if (matrix.empty()) return x;
  const std::size_t d = x.size();
  std::vector<double> out(d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) out[i] += matrix[transposed ? j * d + i : i * d + j] * x[j];
  }
  return out;
}

/// Queries or keys (H, T, d) rotated by the library, computed in T.
template <typename T>
std::vector<double> library_rotated(const ConformanceCase& c, const char* name, const Mistake& mistake) {
  const std::vector<double> x = c.doubles(name),
                            basis = c.has("basis") ? c.doubles("basis") : std::vector<double>();
  const std::size_t d = c.head_dim, tokens = x.size() / d / c.heads;
  const bool halves = (c.layout == "halves" || c.layout == "halves_by_axis") != mistake.swaps_pairing;
  const std::vector<std::size_t> stored = stored_channels(c.layout, d);

  Tensor<double> angles = library_angles(c, mistake);
  for (double& angle : angles.flat()) angle *= mistake.sign;
  if (mistake.one_late)
    std::rotate(angles.data(), angles.data() + angles.num_elements() - angles.shape().last(),
                angles.data() + angles.num_elements());
  std::size_t prefix = c.prefix;
  if (c.has("class_angles")) {  // a row of the table for the class token
    const std::vector<double> first = c.doubles("class_angles");
    Tensor<double> all(Shape{angles.dim(0) + 1, angles.dim(1)});
    std::copy(first.begin(), first.end(), all.data());
    std::copy(angles.data(), angles.data() + angles.num_elements(), all.data() + first.size());
    angles = std::move(all);
    prefix -= 1;
  }
  const RopeTable<T> table(angles, halves ? RopePairing::halves : RopePairing::neighbors);
  const std::size_t in_place = prefix + table.num_patches();  // tokens before the suffix
  std::vector<double> out(x.size());
  Tensor<T> rotated(Shape{1, in_place, c.heads, d});
  const auto row_of = [&](std::size_t h, std::size_t t) {
    const auto at = x.begin() + static_cast<std::ptrdiff_t>((h * tokens + t) * d);
    return std::vector<double>(at, at + static_cast<std::ptrdiff_t>(d));
  };
  for (std::size_t t = 0; t < in_place; ++t) {
    for (std::size_t h = 0; h < c.heads; ++h) {
      const std::vector<double> row = in_basis(basis, false, row_of(h, t));
      for (std::size_t i = 0; i < d; ++i)
        rotated.data()[(t * c.heads + h) * d + i] = static_cast<T>(row[stored[i]]);
    }
  }
  rotate(rotated.view(), table, prefix);
  for (std::size_t h = 0; h < c.heads; ++h) {
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<double> row = row_of(h, t);
      if (t < in_place) {
        for (std::size_t i = 0; i < d; ++i)
          row[stored[i]] = static_cast<double>(rotated.data()[(t * c.heads + h) * d + i]);
        row = in_basis(basis, true, row);
      }
      std::copy(row.begin(), row.end(), out.begin() + static_cast<std::ptrdiff_t>((h * tokens + t) * d));
    }
  }
  return out;
}

double largest(const std::vector<double>& values) {
  double found = 0.0;
  for (const double value : values) found = std::max(found, std::abs(value));
  return found;
}

double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - expected[i]));
  return worst;
}

/// Error of an angle: the power, the scale, the coordinate and the products of both axes each round a few
/// times, on both sides of the comparison.
double angle_bound(const ConformanceCase& c) {
  const double size = largest(c.doubles("coordinates")) * largest(c.doubles("normal_form"));
  return 16.0 * kDouble * std::max(1.0, 2.0 * size);
}

/// Error of a rotated channel with |x| < 2: factor, product and sum round once each, and the angle; a basis
/// adds two products of d terms each.
double rotated_bound(const ConformanceCase& c, double roundoff) {
  const double of_basis = c.has("basis") ? 1.0 + 2.0 * static_cast<double>(c.head_dim) : 1.0;
  return 4.0 * (4.0 * roundoff * of_basis + angle_bound(c));
}

/// q_rotated . k_rotated / sqrt(d), (H, T, T).
std::vector<double> scores_of(const ConformanceCase& c, const std::vector<double>& q,
                              const std::vector<double>& k) {
  const std::size_t d = c.head_dim, tokens = q.size() / d / c.heads;
  std::vector<double> scores;
  for (std::size_t row = 0; row < c.heads * tokens; ++row) {
    for (std::size_t other = row / tokens * tokens; other < (row / tokens + 1) * tokens; ++other) {
      double sum = 0.0;
      for (std::size_t i = 0; i < d; ++i) sum += q[row * d + i] * k[other * d + i];
      scores.push_back(sum / std::sqrt(static_cast<double>(d)));
    }
  }
  return scores;
}

/// Of an axial convention with two axes, or learned: what the functions of the library compute.
bool is_rotary(const ConformanceCase& c) {
  return c.axes <= 2;
}

}  // namespace

TEST_CASE("position: conformance vectors of every convention of the table are there") {
  const std::vector<ConformanceCase> cases = test::conformance_cases();
  for (const char* const name :
       {"rope-vit", "rope-vit-mixed", "eva02", "perception-encoder", "perception-encoder-timm", "dinov3",
        "sam2", "sam3", "sam3-windows", "qwen2-vl", "mlcd", "pixtral", "mistral", "moonvit", "croco",
        "gemma4", "llama4", "vjepa2"}) {
    CAPTURE(name);
    CHECK(std::ranges::any_of(cases, [&](const ConformanceCase& c) { return c.name == name; }));
  }
  const auto with = [&](auto&& holds) { return std::ranges::any_of(cases, holds); };
  CHECK(with([](const ConformanceCase& c) { return c.window != 0; }));
  CHECK(with([](const ConformanceCase& c) { return c.frames == 2; }));
  CHECK(with([](const ConformanceCase& c) { return c.offset != 0.0; }));
  CHECK(with([](const ConformanceCase& c) { return c.prefix > 1; }));
  CHECK(with([](const ConformanceCase& c) { return c.suffix > 0; }));
  CHECK(std::ranges::all_of(
      cases, [](const ConformanceCase& c) { return c.axes == 1 || c.grid.rows != c.grid.columns; }));
}

TEST_CASE("position: coordinates, angles and factors agree with the conformance vectors") {
  for (const ConformanceCase& c : test::conformance_cases()) {
    if (!is_rotary(c)) continue;
    CAPTURE(c.name);
    CAPTURE(c.title);
    const Tensor<double> angles = library_angles(c, {});
    if (c.is_axial) CHECK(angles.shape() == Shape(c.shape("angles")));
    const std::vector<double> found(angles.flat().begin(), angles.flat().end());
    CHECK(distance(found, c.doubles("angles")) <= angle_bound(c));
    if (c.axes == 2) {
      const GridCoords coords = library_coords(c, {});
      std::vector<double> both;
      for (std::size_t n = 0; n < coords.size(); ++n) both.insert(both.end(), {coords.t_x[n], coords.t_y[n]});
      CHECK(distance(both, c.doubles("coordinates")) <= 4.0 * kDouble * std::max(1.0, largest(both)));
    }
    const RopeTable<double> table(angles, RopePairing::neighbors);
    const RopeTable<float> rounded(angles, RopePairing::neighbors);
    for (const char* const name : {"cos", "sin"}) {
      const bool is_cos = std::strcmp(name, "cos") == 0;
      const auto exact = is_cos ? table.cos().flat() : table.sin().flat();
      const auto single = is_cos ? rounded.cos().flat() : rounded.sin().flat();
      CHECK(distance({exact.begin(), exact.end()}, c.doubles(name)) <= angle_bound(c) + kDouble);
      CHECK(distance({single.begin(), single.end()}, c.doubles(name)) <= angle_bound(c) + kFloat);
    }
  }
}

TEST_CASE("position: rotated queries, keys and their scores agree with the conformance vectors") {
  for (const ConformanceCase& c : test::conformance_cases()) {
    if (!is_rotary(c)) continue;
    CAPTURE(c.name);
    CAPTURE(c.title);
    const std::vector<double> q = library_rotated<double>(c, "q", {}),
                              k = library_rotated<double>(c, "k", {});
    const double bound = rotated_bound(c, kDouble);
    CHECK(distance(q, c.doubles("q_rotated")) <= bound);
    CHECK(distance(k, c.doubles("k_rotated")) <= bound);
    for (const char* const name : {"q", "k"}) {
      const std::vector<double> single = library_rotated<float>(c, name, {});
      CHECK(distance(single, c.doubles(std::string(name) + "_rotated")) <= rotated_bound(c, kFloat));
    }
    // Each product of two rotated channels below 3 in size errs by 6 bounds, their sum rounds d times.
    const double d = static_cast<double>(c.head_dim);
    CHECK(distance(scores_of(c, q, k), c.doubles("scores")) <=
          std::sqrt(d) * (7.0 * bound + 9.0 * d * kDouble));
  }
}

TEST_CASE("position: a mistake in any choice is found by the conformance vectors") {
  std::vector<Mistake> mistakes(7);
  mistakes[0] = {.name = "sign", .sign = -1.0};
  mistakes[1] = {.name = "offset", .offset = 1.0};
  mistakes[2] = {.name = "swapped coordinates", .swaps_coordinates = true};
  mistakes[3] = {.name = "order of axes", .swaps_order = true};
  mistakes[4] = {.name = "pairing", .swaps_pairing = true};
  mistakes[5] = {.name = "theta", .theta_factor = 1.5};
  mistakes[6] = {.name = "prefix", .one_late = true};
  for (const ConformanceCase& c : test::conformance_cases()) {
    if (!is_rotary(c)) continue;
    CAPTURE(c.name);
    CAPTURE(c.title);
    for (const Mistake& mistake : mistakes) {
      if (c.axes == 1 && (mistake.swaps_coordinates || mistake.swaps_order)) continue;
      CAPTURE(mistake.name);
      CHECK(distance(library_rotated<double>(c, "q", mistake), c.doubles("q_rotated")) > 0.01);
    }
  }
}

TEST_CASE("position: fixed rows and relative distances agree with the conformance vectors") {
  const auto file = test::conformance_file("sinusoidal");
  const auto check = [](const Tensor<double>& found, const std::vector<double>& expected) {
    CHECK(distance({found.flat().begin(), found.flat().end()}, expected) <=
          64.0 * kDouble);  // angles up to 7
  };
  check(sinusoidal_1d<double>(7, 16), file.doubles("line"));
  check(sinusoidal_2d<double>({3, 5}, 16), file.doubles("grid"));
  check(sinusoidal_2d_quarters<double>({3, 5}, 16), file.doubles("quarters"));

  const auto shaw = test::conformance_file("shaw");
  const auto tensor = [&](const char* name, bool of_batch) {
    std::vector<std::size_t> shape = shaw.shape(name);
    if (of_batch) shape.insert(shape.begin(), 1);
    Tensor<double> out{Shape(shape)};
    const std::vector<double> values = shaw.doubles(name);
    std::copy(values.begin(), values.end(), out.data());
    return out;
  };
  const Tensor<double> q = tensor("q", true), k = tensor("k", true), v = tensor("v", true);
  const Tensor<double> keys = tensor("keys", false), values = tensor("values", false);
  const auto result = relative_attention<double>(q.view(), k.view(), v.view(),
                                                 {.keys = keys.view(), .values = values.view()});
  check(result.probabilities, shaw.doubles("probabilities"));
  check(result.out, shaw.doubles("out"));
  check(nezha_table<double>(2, 8), shaw.doubles("nezha"));
}

}  // namespace vit::position
