#include "vit/position/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::position {
namespace {

constexpr Where kWhere{"scale_frequencies", ErrorKind::argument};

struct Sides {
  double length = 0.0;   // G
  double trained = 0.0;  // G_0
  double reference = 0.0;
};

Sides sides_of(std::size_t length, std::size_t trained, std::size_t reference) {
  return {static_cast<double>(length), static_cast<double>(trained), static_cast<double>(reference)};
}

// Divisions come before products, as in grid_coords().
double counted(std::size_t index, const Sides& axis, const CoordinateOptions& options) {
  const double i = static_cast<double>(index);
  switch (options.rule) {
    case CoordinateRule::index: return i + options.offset;
    case CoordinateRule::scaled_to_reference: return (i + options.offset) / axis.trained * axis.reference;
    case CoordinateRule::corners:
      return axis.trained < 2 ? 0.0 : i * (axis.reference - 1.0) / (axis.trained - 1.0);
    case CoordinateRule::centered:
      return 2.0 * ((i + 0.5 + options.offset) / axis.trained) - axis.length / axis.trained;
  }
  fail("extrapolated_coords", "unknown coordinate rule ", static_cast<int>(options.rule));
}

double trained_span(const CoordinateOptions& options, std::size_t trained, std::size_t reference) {
  switch (options.rule) {
    case CoordinateRule::index: return static_cast<double>(trained);
    case CoordinateRule::scaled_to_reference: return static_cast<double>(reference);
    case CoordinateRule::corners: return static_cast<double>(reference) - 1.0;
    case CoordinateRule::centered: return 2.0;
  }
  fail("grid_scale", "unknown coordinate rule ", static_cast<int>(options.rule));
}

void check_reference(const CoordinateOptions& options) {
  const bool is_needed =
      options.rule == CoordinateRule::scaled_to_reference || options.rule == CoordinateRule::corners;
  VIT_CHECK(!is_needed || (options.reference.rows != 0 && options.reference.columns != 0), kWhere,
            "a reference grid of ", options.reference.rows, " x ", options.reference.columns);
}

double turns_of(double span_times_frequency) {
  return span_times_frequency / (2.0 * std::numbers::pi);
}

/// g of yarn: 1 for pairs that stay, 0 for those that are divided by s.
double kept_part(const RopeScaling& scaling, double turns) {
  if (turns <= scaling.beta_slow) return 0.0;
  if (turns >= scaling.beta_fast) return 1.0;
  return std::log(turns / scaling.beta_slow) / std::log(scaling.beta_fast / scaling.beta_slow);
}

/// Where yarn's ramp begins and ends on a ladder, in places k of its frequencies.
struct LadderRamp {
  double low = 0.0, high = 0.0;

  double kept_part(std::size_t k) const {
    return 1.0 - std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
  }
};

LadderRamp truncated_ramp(const RopeScaling& scaling, std::span<const double> ladder, double span) {
  LadderRamp out;
  if (ladder.size() > 1) {
    const double most = 2.0 * static_cast<double>(ladder.size()) - 1.0;
    const double step = std::log(ladder.front() / ladder.back()) / static_cast<double>(ladder.size() - 1);
    VIT_CHECK(step > 0, kWhere, "truncate needs frequencies that fall, found ", ladder.front(), " to ",
              ladder.back());
    const auto place = [&](double beta) { return std::log(turns_of(span * ladder.front()) / beta) / step; };
    out.low = std::clamp(std::floor(place(scaling.beta_fast)), 0.0, most);
    out.high = std::min(std::ceil(place(scaling.beta_slow)), most);
  }
  if (out.high <= out.low) out.high = out.low + 0.001;
  return out;
}

double yarn_gain(double kept, double scale) {
  return kept + (1.0 - kept) / scale;
}

/// p of ntk for a learned pair.
double ntk_power(double turns, double most_turns) {
  if (most_turns <= 1.0 || turns <= 1.0) return 1.0;
  return 1.0 - std::log(turns) / std::log(most_turns);
}

/// What the two frequencies of one learned pair are multiplied by, for an axis scaled by s.
double mixed_gain(const RopeScaling& scaling, double turns, double most_turns, double scale) {
  if (scale == 1.0) return 1.0;
  switch (scaling.rule) {
    case RopeScalingRule::none: return 1.0;
    case RopeScalingRule::linear: return 1.0 / scale;
    case RopeScalingRule::ntk: return std::pow(scale, -ntk_power(turns, most_turns));
    case RopeScalingRule::yarn: return yarn_gain(kept_part(scaling, turns), scale);
  }
  fail("scale_frequencies", "unknown rule ", static_cast<int>(scaling.rule));
}

}  // namespace

GridScale grid_scale(GridSize grid, GridSize trained, const CoordinateOptions& options,
                     const RopeScaling& scaling) {
  validate(scaling);
  num_patches(grid);
  num_patches(trained);
  check_reference(options);
  GridScale out;
  out.x.trained_span = trained_span(options, trained.columns, options.reference.columns);
  out.y.trained_span = trained_span(options, trained.rows, options.reference.rows);
  out.x.scale = static_cast<double>(grid.columns) / static_cast<double>(trained.columns);
  out.y.scale = static_cast<double>(grid.rows) / static_cast<double>(trained.rows);
  if (scaling.axes == RopeScalingAxes::common) out.x.scale = out.y.scale = std::max(out.x.scale, out.y.scale);
  if (scaling.factor != 0.0) out.x.scale = out.y.scale = scaling.factor;
  return out;
}

GridCoords extrapolated_coords(GridSize grid, GridSize trained, const CoordinateOptions& options) {
  num_patches(trained);
  GridCoords coords = grid_coords(grid, options);  // checks grid and options
  const Sides x_axis = sides_of(grid.columns, trained.columns, options.reference.columns);
  const Sides y_axis = sides_of(grid.rows, trained.rows, options.reference.rows);
  for (std::size_t patch = 0; patch < coords.size(); ++patch) {
    coords.t_x[patch] = counted(patch % grid.columns, x_axis, options);
    coords.t_y[patch] = counted(patch / grid.columns, y_axis, options);
  }
  return coords;
}

RopeScalingRule default_scaling_rule(CoordinateRule rule) noexcept {
  return rule == CoordinateRule::index ? RopeScalingRule::none : RopeScalingRule::linear;
}

RopeFrequencies scale_frequencies(const RopeFrequencies& frequencies, const RopeScaling& scaling,
                                  AxisScale axis) {
  validate(scaling);
  if (axis.scale == 1.0 || scaling.rule == RopeScalingRule::none) return frequencies;
  const std::span<const double> trained = frequencies.values();
  const double last = trained.size() < 2 ? 1.0 : static_cast<double>(trained.size() - 1);
  std::vector<double> scaled(trained.begin(), trained.end());
  const LadderRamp ramp =
      scaling.truncate ? truncated_ramp(scaling, trained, axis.trained_span) : LadderRamp{};
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    const double f = trained[k];
    switch (scaling.rule) {
      case RopeScalingRule::none: break;
      case RopeScalingRule::linear: scaled[k] = f / axis.scale; break;
      case RopeScalingRule::ntk: scaled[k] = f * std::pow(axis.scale, -static_cast<double>(k) / last); break;
      case RopeScalingRule::yarn: {
        const double kept =
            scaling.truncate ? ramp.kept_part(k) : kept_part(scaling, turns_of(axis.trained_span * f));
        scaled[k] = f * yarn_gain(kept, axis.scale);
        break;
      }
    }
  }
  return RopeFrequencies(std::move(scaled));
}

MixedFrequencies scale_frequencies(const MixedFrequencies& frequencies, const RopeScaling& scaling,
                                   const GridScale& scale) {
  validate(scaling);
  VIT_CHECK(!scaling.truncate, kWhere,
            "truncate rounds places on a ladder of frequencies; learned ones are none");
  const std::size_t depth = frequencies.depth(), heads = frequencies.num_heads(),
                    pairs = frequencies.num_pairs();
  Tensor<double> scaled(Shape{2, depth, heads, pairs});
  double* const x_out = scaled.data();
  double* const y_out = scaled.data() + depth * heads * pairs;
  std::vector<double> turns(pairs);
  for (std::size_t row = 0; row < depth * heads; ++row) {
    const std::span<const double> x = frequencies.x(row / heads, row % heads);
    const std::span<const double> y = frequencies.y(row / heads, row % heads);
    for (std::size_t j = 0; j < pairs; ++j)
      turns[j] = turns_of(std::hypot(scale.x.trained_span * x[j], scale.y.trained_span * y[j]));
    const double most_turns = *std::ranges::max_element(turns);
    for (std::size_t j = 0; j < pairs; ++j) {
      x_out[row * pairs + j] = x[j] * mixed_gain(scaling, turns[j], most_turns, scale.x.scale);
      y_out[row * pairs + j] = y[j] * mixed_gain(scaling, turns[j], most_turns, scale.y.scale);
    }
  }
  return MixedFrequencies(std::as_const(scaled).view());
}

double logit_factor(const RopeScaling& scaling, const GridScale& scale, GridSize grid, GridSize trained) {
  validate(scaling);
  double out = 1.0;
  if (scaling.rule == RopeScalingRule::yarn && !scale.is_one()) {
    const double s = std::sqrt(scale.x.scale * scale.y.scale);
    const double factor = scaling.attention_factor.value_or(s > 1.0 ? 0.1 * std::log(s) + 1.0 : 1.0);
    out = factor * factor;
  }
  if (scaling.temperature == RopeTemperature::log) {
    const auto count = static_cast<double>(num_patches(grid));
    const auto trained_count = static_cast<double>(num_patches(trained));
    if (trained_count > 1.0 && count > trained_count) out *= std::log(count) / std::log(trained_count);
  }
  return out;
}

}  // namespace vit::position
