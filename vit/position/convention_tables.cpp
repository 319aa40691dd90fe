#include "vit/position/convention_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "vit/base/check.h"

namespace vit::position {
namespace {

constexpr const char* kConvention = "rope_convention";
constexpr double kTurn = 2.0 * std::numbers::pi;

// ------------------------------------------------------------------------------------------- coordinates

std::optional<CoordinateRule> grid_rule(PatchCoordinates rule) {
  switch (rule) {
    case PatchCoordinates::index: return CoordinateRule::index;
    case PatchCoordinates::scaled_to_reference: return CoordinateRule::scaled_to_reference;
    case PatchCoordinates::centered: return CoordinateRule::centered;
    case PatchCoordinates::corners: return CoordinateRule::corners;
    default: return std::nullopt;
  }
}

/// Coordinates of the patches of one axis by a rule that models of this library do not have.
std::vector<double> other_coordinates(const RopeConvention& c, std::size_t length) {
  VIT_CHECK(length > 1 || c.coordinates == PatchCoordinates::fraction, kConvention, "coordinates by ",
            to_string(c.coordinates), " are not defined for a side of one patch");
  VIT_CHECK(c.offset == 0.0, kConvention, "coordinates by ", to_string(c.coordinates), " have no offset");
  const auto count = static_cast<double>(length);
  std::vector<double> out(length);
  for (std::size_t at = 0; at < length; ++at) {
    const auto i = static_cast<double>(at);
    out[at] = c.coordinates == PatchCoordinates::linspace ? 2.0 * i / (count - 1.0) - 1.0 : (i + 0.5) / count;
  }
  return out;
}

// ------------------------------------------------------------------------------------------- frequencies

std::vector<double> geometric(const RopeConvention& c, std::size_t count) {
  VIT_CHECK(c.lowest > 0.0 && c.highest >= c.lowest, kConvention, "frequencies from ", c.lowest, " to ",
            c.highest);
  std::vector<double> out;
  for (std::size_t k = 0; k < count; ++k) {
    const double step = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0.0;
    out.push_back(count > 1 ? c.lowest * std::pow(c.highest / c.lowest, step) : c.lowest);
  }
  return out;
}

RopeFrequencies axis_frequencies(const RopeConvention& c, std::size_t count) {
  switch (c.rule) {
    case FrequencyRule::theta: return RopeFrequencies::from_theta(count, c.theta).scaled(c.factor);
    case FrequencyRule::periods: return RopeFrequencies::from_period_range(count, c.periods).scaled(c.factor);
    case FrequencyRule::pixel: return RopeFrequencies::pixel_bands(count, c.max_frequency).scaled(c.factor);
    case FrequencyRule::exp_pi: return RopeFrequencies::exp_pi(count).scaled(c.factor);
    case FrequencyRule::geometric: return RopeFrequencies(geometric(c, count)).scaled(c.factor);
  }
  fail(kConvention, "unknown rule of frequencies ", static_cast<int>(c.rule));
}

FrequencyVectors axial_vectors(const RopeConvention& c, std::size_t head_dim) {
  const std::size_t count = num_axial_frequencies(head_dim);
  const RopeFrequencies first = axis_frequencies(c, count);
  const bool alternate = c.axis_frequencies == AxisFrequencies::alternating;
  const RopeFrequencies second =
      alternate ? first.scaled(std::pow(c.theta, -2.0 / static_cast<double>(head_dim))) : first;
  const bool x_first = c.order == AxisOrder::x_then_y;
  FrequencyVectors vectors =
      FrequencyVectors::axial(x_first ? first : second, x_first ? second : first, c.order);
  if (c.channels != PairLayout::alternating) return vectors;
  std::vector<FrequencyVector> alternating;
  for (std::size_t k = 0; k < count; ++k) {
    alternating.push_back(vectors.of(0, 0)[k]);
    alternating.push_back(vectors.of(0, 0)[count + k]);
  }
  return FrequencyVectors(std::move(alternating));
}

/// The numbers from which rope-vit trains: lengths 10^(-4k/d) in two perpendicular directions of each head,
/// which are random there and divide the circle by the golden ratio here.
FrequencyVectors mixed_vectors(std::size_t head_dim, std::size_t num_heads) {
  const std::size_t count = num_axial_frequencies(head_dim);
  const RopeFrequencies lengths = RopeFrequencies::from_theta(count, 10.0);
  std::vector<FrequencyVector> vectors;
  for (std::size_t head = 0; head < num_heads; ++head) {
    const double direction = kTurn * static_cast<double>(head + 1) / std::numbers::phi;
    for (std::size_t j = 0; j < 2 * count; ++j) {
      const double angle = direction + (j < count ? 0.0 : std::numbers::pi / 2.0);
      const double length = lengths[j % count];
      vectors.push_back({.x = length * std::cos(angle), .y = length * std::sin(angle)});
    }
  }
  return FrequencyVectors(1, num_heads, std::move(vectors));
}

FrequencyVector along(std::size_t axis, double w) {  // of t, y and x
  FrequencyVector out;
  (axis == 0 ? out.t : axis == 1 ? out.y : out.x) = w;
  return out;
}

FrequencyVectors volume_vectors(const RopeConvention& c, std::size_t head_dim) {
  if (c.kind == ConventionKind::volume_in_turn) {
    const RopeFrequencies steps = axis_frequencies(c, num_frequencies_1d(head_dim));
    std::vector<FrequencyVector> vectors;
    for (std::size_t j = 0; j < steps.size(); ++j) vectors.push_back(along(j % 3, steps[j]));
    return FrequencyVectors(std::move(vectors));
  }
  const RopeFrequencies steps = axis_frequencies(c, num_volume_frequencies(head_dim));
  if (c.angles == RopeAngles::per_channel) return FrequencyVectors::volume(steps, head_dim);
  std::vector<FrequencyVector> vectors;
  for (std::size_t j = 0; j < 3 * steps.size(); ++j)
    vectors.push_back(along(j / steps.size(), steps[j % steps.size()]));
  if (c.channels != PairLayout::halves) vectors.resize(num_frequencies_1d(head_dim));  // the rest at angle 0
  return FrequencyVectors(std::move(vectors));
}

FrequencyVectors spiral_vectors(const RopeConvention& c, std::size_t head_dim) {
  const std::size_t directions = c.num_directions;
  VIT_CHECK(directions >= 2 && directions % 2 == 0 && head_dim % (4 * directions) == 0, kConvention,
            "heads of ", head_dim, " channels in ", directions,
            " directions, expected an even number, 4 times which divides the channels");
  const RopeFrequencies steps = axis_frequencies(c, num_axial_frequencies(head_dim));
  std::vector<FrequencyVector> vectors;
  for (std::size_t k = 0; k < directions; ++k) {
    const double angle = static_cast<double>(k) * std::numbers::pi / static_cast<double>(directions);
    for (std::size_t j = 0; j < head_dim / 2 / directions; ++j) {
      const double w = steps[2 * (k % (directions / 2)) + j / 2 * directions + j % 2];
      vectors.push_back({.x = w * std::cos(angle), .y = w * std::sin(angle)});
    }
  }
  return FrequencyVectors(std::move(vectors));
}

/// x with erf(x) = y, |y| < 1, by Newton's method.
double inverse_erf(double y) {
  double x = 0.0;
  for (int i = 0; i < 100; ++i) {
    const double slope = 2.0 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
    const double step = (std::erf(x) - y) / slope;
    x -= std::max(-0.5, std::min(0.5, step));
    if (std::abs(step) < 1e-17) break;
  }
  return x;
}

FrequencyVectors golden_vectors(const RopeConvention& c, std::size_t head_dim, std::size_t num_heads) {
  const std::size_t pairs = num_frequencies_1d(head_dim);
  const RopeFrequencies sizes = axis_frequencies(c, pairs);
  const double golden = std::numbers::pi * (std::sqrt(5.0) - 1.0) / 2.0;
  double plastic = 2.0;
  for (int i = 0; i < 100; ++i) plastic = std::pow(1.0 + plastic, 1.0 / 3.0);
  std::vector<FrequencyVector> vectors;
  for (std::size_t n = 0; n < num_heads * pairs; ++n) {
    const auto at = static_cast<double>(n);
    const double w = sizes[n % pairs];
    if (c.kind == ConventionKind::golden_gate) {
      vectors.push_back({.x = w * std::cos(at * golden), .y = w * std::sin(at * golden)});
      continue;
    }
    const double row = inverse_erf(2.0 * std::fmod((at + 1.0) * std::pow(plastic, -1.0), 1.0) - 1.0);
    const double column = inverse_erf(2.0 * std::fmod((at + 1.0) * std::pow(plastic, -2.0), 1.0) - 1.0);
    const double scale = w / std::sqrt(row * row + column * column);
    vectors.push_back({.x = scale * column, .y = scale * row});
  }
  return FrequencyVectors(1, num_heads, std::move(vectors));
}

FrequencyVectors line_vectors(const RopeConvention& c, std::size_t head_dim) {
  const RopeFrequencies steps = axis_frequencies(c, num_frequencies_1d(head_dim));
  std::vector<FrequencyVector> vectors;
  for (const double w : steps.values()) vectors.push_back({.x = w});
  return FrequencyVectors(std::move(vectors));
}

}  // namespace

std::vector<ChannelPair> channel_pairs(PairLayout channels, std::size_t head_dim) {
  const std::size_t pairs = num_frequencies_1d(head_dim), quarter = pairs / 2;
  if (channels == PairLayout::halves_by_axis || channels == PairLayout::alternating)
    num_axial_frequencies(head_dim);
  std::vector<ChannelPair> out(pairs);
  for (std::size_t j = 0; j < pairs; ++j) {
    switch (channels) {
      case PairLayout::neighbors:
      case PairLayout::alternating: out[j] = {2 * j, 2 * j + 1}; break;
      case PairLayout::halves: out[j] = {j, j + pairs}; break;
      case PairLayout::halves_by_axis: {
        const std::size_t start = j < quarter ? 0 : pairs, k = j % quarter;
        out[j] = {start + k, start + k + quarter};
        break;
      }
    }
  }
  return out;
}

std::vector<ChannelPair> channel_pairs(const RopeConvention& convention, std::size_t head_dim) {
  const bool leaves = convention.kind == ConventionKind::volume && convention.channels == PairLayout::halves;
  return channel_pairs(convention.channels, leaves ? 6 * num_volume_frequencies(head_dim) : head_dim);
}

HeadSizes head_sizes(const RopeConvention& convention) {
  switch (convention.kind) {
    case ConventionKind::axial:
    case ConventionKind::mixed: return {4, 4};
    case ConventionKind::volume: return {6, 2};
    case ConventionKind::spiral: return {4 * convention.num_directions, 4 * convention.num_directions};
    default: return {2, 2};
  }
}

bool has_time(const RopeConvention& convention) {
  return convention.kind == ConventionKind::volume || convention.kind == ConventionKind::volume_in_turn;
}

bool has_heads(const RopeConvention& convention) {
  return convention.kind == ConventionKind::golden_gate ||
         convention.kind == ConventionKind::golden_gate_nd ||
         (convention.kind == ConventionKind::mixed && convention.basis_block == 0);
}

AxisCoordinates axis_coordinates(const RopeConvention& c, GridSize grid) {
  num_patches(grid);
  AxisCoordinates out;
  if (const std::optional<CoordinateRule> rule = grid_rule(c.coordinates)) {
    const CoordinateOptions options{.rule = *rule, .offset = c.offset, .reference = c.reference};
    out.columns = grid_coords({1, grid.columns}, options).t_x;
    out.rows = grid_coords({grid.rows, 1}, options).t_y;
  } else {
    out.columns = other_coordinates(c, grid.columns);
    out.rows = other_coordinates(c, grid.rows);
  }
  if (c.window != 0) {
    const AxisCoordinates corner = out;
    for (std::size_t i = 0; i < grid.columns; ++i) out.columns[i] = corner.columns[i % c.window];
    for (std::size_t i = 0; i < grid.rows; ++i) out.rows[i] = corner.rows[i % c.window];
  }
  if (c.keeps_aspect) {
    const auto width = static_cast<double>(grid.columns), height = static_cast<double>(grid.rows);
    for (double& x : out.columns) x *= std::sqrt(width / height);
    for (double& y : out.rows) y *= std::sqrt(height / width);
  }
  return out;
}

GridCoords coordinates(const RopeConvention& convention, GridSize grid, std::size_t num_frames) {
  VIT_CHECK(num_frames == 1 || has_time(convention), kConvention, num_frames,
            " frames for positions of rows and columns");
  VIT_CHECK(convention.kind != ConventionKind::line || grid.rows == 1, kConvention,
            "positions of a sequence are a grid of one row, not of ", grid.rows);
  const AxisCoordinates axes = axis_coordinates(convention, grid);
  GridCoords out = clip_coords(num_frames, grid);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.t_x[i] = axes.columns[i % grid.columns];
    out.t_y[i] = axes.rows[i / grid.columns % grid.rows];
  }
  if (!has_time(convention)) out.t_t.clear();
  return out;
}

FrequencyVectors frequency_vectors(const RopeConvention& convention, std::size_t head_dim,
                                   std::size_t num_heads) {
  VIT_CHECK(num_heads > 0, kConvention, "no heads");
  switch (convention.kind) {
    case ConventionKind::axial: return axial_vectors(convention, head_dim);
    case ConventionKind::mixed: return mixed_vectors(head_dim, convention.basis_block == 0 ? num_heads : 1);
    case ConventionKind::volume:
    case ConventionKind::volume_in_turn: return volume_vectors(convention, head_dim);
    case ConventionKind::spiral: return spiral_vectors(convention, head_dim);
    case ConventionKind::golden_gate:
    case ConventionKind::golden_gate_nd: return golden_vectors(convention, head_dim, num_heads);
    case ConventionKind::line: return line_vectors(convention, head_dim);
  }
  fail(kConvention, "unknown kind ", static_cast<int>(convention.kind));
}

Tensor<double> example_basis(const RopeConvention& convention, std::size_t head_dim) {
  if (convention.basis_block == 0) return {};
  Tensor<double> out(Shape{head_dim, head_dim});
  const auto row = [&](std::size_t i) { return out.data() + i * head_dim; };
  for (std::size_t i = 0; i < head_dim; ++i) row(i)[i] = 1.0;
  // Rotations of neighboring rows within each block, twice: no row remains as it was.
  for (std::size_t pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i + 1 < head_dim; ++i) {
      if ((i + 1) % convention.basis_block == 0) continue;
      const double angle = kTurn * static_cast<double>(i + pass + 1) / std::numbers::phi;
      for (std::size_t j = 0; j < head_dim; ++j) {
        const double a = row(i)[j], b = row(i + 1)[j];
        row(i)[j] = a * std::cos(angle) - b * std::sin(angle);
        row(i + 1)[j] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  return out;
}

void change_basis(TensorView<double> x, const Tensor<double>& basis, BasisChange direction,
                  std::size_t num_prefix) {
  const std::size_t d = x.num_columns();
  VIT_CHECK(x.rank() == 4 && !x.empty() && basis.shape() == Shape({d, d}) && num_prefix <= x.dim(1),
            "change_basis", "a basis ", basis.shape().to_string(), " for vectors ", x.describe(),
            ", of which ", num_prefix, " are a prefix");
  const bool is_back = direction == BasisChange::back;
  std::vector<double> out(d);
  for (std::size_t row = 0; row < x.num_rows(); ++row) {
    if (row / x.dim(2) % x.dim(1) < num_prefix) continue;
    for (std::size_t i = 0; i < d; ++i) {
      out[i] = 0.0;
      for (std::size_t j = 0; j < d; ++j)
        out[i] += basis.data()[is_back ? j * d + i : i * d + j] * x.row(row)[j];
    }
    std::ranges::copy(out, x.row(row));
  }
}

void rotate_pairs(TensorView<double> x, TensorView<const double> angles, std::span<const ChannelPair> pairs,
                  RopeAngles per, std::size_t num_prefix) {
  VIT_CHECK(!x.empty() && !angles.empty() && angles.rank() >= 2 && angles.rank() <= 3, "rotate_pairs",
            "vectors ", x.describe(), " and angles ", angles.describe(), ", expected (N, A) or (H, N, A)");
  const std::size_t heads = angles.rank() == 3 ? angles.dim(0) : 1;
  const std::size_t patches = angles.dim(angles.rank() - 2);
  const std::size_t count = per == RopeAngles::per_channel ? 2 * pairs.size() : pairs.size();
  VIT_CHECK(x.rank() == 4 && x.num_columns() >= 2 * pairs.size() && num_prefix <= x.dim(1) &&
                x.dim(1) - num_prefix == patches && angles.num_columns() == count &&
                (heads == 1 || heads == x.dim(2)),
            "rotate_pairs", "vectors ", x.shape().to_string(), " and ", num_prefix,
            " prefix tokens do not fit angles ", angles.shape().to_string());
  const std::size_t channels = per == RopeAngles::per_channel ? count : x.num_columns();
  for (const ChannelPair& pair : pairs)
    VIT_CHECK(pair.p < channels && pair.q < channels, "rotate_pairs", "a pair of channels ", pair.p, " and ",
              pair.q, " of ", channels);
  for (std::size_t row = 0; row < x.num_rows(); ++row) {
    const std::size_t token = row / x.dim(2) % x.dim(1), head = heads == 1 ? 0 : row % x.dim(2);
    if (token < num_prefix) continue;
    const double* const angle = angles.row(head * patches + token - num_prefix);
    for (std::size_t j = 0; j < pairs.size(); ++j) {
      double& at_p = x.row(row)[pairs[j].p];
      double& at_q = x.row(row)[pairs[j].q];
      const double of_p = per == RopeAngles::per_channel ? angle[pairs[j].p] : angle[j];
      const double of_q = per == RopeAngles::per_channel ? angle[pairs[j].q] : angle[j];
      const double p = at_p, q = at_q;
      at_p = p * std::cos(of_p) - q * std::sin(of_p);
      at_q = q * std::cos(of_q) + p * std::sin(of_q);
    }
  }
}

}  // namespace vit::position
