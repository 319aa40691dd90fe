#include "vit/position/rope_measure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/rope_slopes.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;
constexpr double kSlack = 2.5;  // numbers that are measured have errors of their own

// ---------------------------------------------------------------------------- from ladders to choices

bool is_near(double a, double b, double part = 0.01) {
  return std::abs(a - b) <= part * std::max(std::abs(a), std::abs(b));
}

/// The number of six digits, without the rounding errors of products.
double six_digits(double value) {
  const std::string digits = text(value);
  double out = value;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

/// Ever longer decimal forms of a measured number, and itself.
std::vector<double> short_forms(double value) {
  std::vector<double> out;
  for (const double known : {kTwoPi, std::numbers::pi, std::numbers::pi / 2.0, 2.0 * kTwoPi})
    if (is_near(value, known)) out.push_back(known);
  const double exponent = std::floor(std::log10(std::abs(value)));
  for (int digits = 0; digits < 7; ++digits) {
    const double unit = std::pow(10.0, exponent - digits);
    const double rounded = std::round(value / unit) * unit;
    if (is_near(rounded, value)) out.push_back(six_digits(rounded));
  }
  out.push_back(value);
  return out;
}

/// A candidate with numbers as measured.
struct Candidate {
  RopeConvention choices;
  double factor = 1.0;
  double scale = 1.0;  // of coordinates, per patch
  std::vector<double>
      steps{};  // of frequencies by theta, per patch; empty: not of this rule, or a single one
};

/// Both axes: of a missing one (a grid of one row or column) the ladder is that of the other.
struct BothLadders {
  Ladder x, y;
  GridSize grid;
  std::size_t count = 0;
  bool has_x = true, has_y = true;
};

double shifted(double origin) {                   // to multiples of 1/64
  return std::round(origin * 64.0) / 64.0 + 0.0;  // no negative zero
}

void set_rule(Candidate& candidate, const Ladder& ladder, double first) {
  RopeConvention& c = candidate.choices;
  c.rule = ladder.rule;
  candidate.factor = first;
  if (ladder.rule == FrequencyRule::pixel) {
    // pi linspace(1, m / 2, F) times a factor
    candidate.factor = first / std::numbers::pi;
    c.max_frequency = short_forms(2.0 * ladder.last / ladder.first).front();
  } else if (ladder.steps.size() > 1) {
    candidate.steps = ladder.steps;
  }
}

/// theta of f_k = f_0 theta^(-k / F): the mean of all k by how exact they are, which is absolutely the same
/// for all f_k.
double theta_of(const Candidate& candidate, double factor) {
  const double first = factor * candidate.scale;
  const auto count = static_cast<double>(candidate.steps.size());
  double sum = 0.0, weights = 0.0;
  for (std::size_t k = 1; k < candidate.steps.size(); ++k) {
    const double part = static_cast<double>(k) / count, weight = std::pow(candidate.steps[k] * part, 2);
    if (!(first / candidate.steps[k] > 0.0)) return 0.0;
    sum += weight * std::log(first / candidate.steps[k]) / part;
    weights += weight;
  }
  return std::exp(sum / weights);
}

std::vector<Candidate> candidates_of(const BothLadders& ladders) {
  const Ladder &x = ladders.x, &y = ladders.y;
  const auto w = static_cast<double>(ladders.grid.columns), h = static_cast<double>(ladders.grid.rows);
  const bool by_x = ladders.has_x && (!ladders.has_y || w >= h);  // the longer axis is measured better
  const Ladder& any = by_x ? x : y;
  const double length = by_x ? w : h;
  std::vector<Candidate> out;
  const auto add = [&](PatchCoordinates rule, const Ladder& ladder, double scale,
                       double offset) -> RopeConvention& {
    Candidate& candidate = out.emplace_back();
    candidate.choices.coordinates = rule;
    candidate.choices.offset = shifted(offset);
    candidate.scale = scale;
    set_rule(candidate, ladder, ladder.first / scale);
    return candidate.choices;
  };
  const bool same = !ladders.has_x || !ladders.has_y || is_near(x.first, y.first);
  if (same && is_near(any.first, 1.0)) add(PatchCoordinates::index, any, 1.0, any.origin);
  // y_then_x: rows f, columns f / sqrt(ratio); x_then_y the other way round
  const double between = std::sqrt(any.ratio);
  if (ladders.has_x && ladders.has_y && ladders.count > 1) {
    if (is_near(x.first * between, y.first) && is_near(y.first, 1.0)) {
      RopeConvention& c = add(PatchCoordinates::index, y, 1.0, y.origin);
      c.axis_frequencies = AxisFrequencies::alternating;
      c.order = AxisOrder::y_then_x;
    } else if (is_near(y.first * between, x.first) && is_near(x.first, 1.0)) {
      RopeConvention& c = add(PatchCoordinates::index, x, 1.0, x.origin);
      c.axis_frequencies = AxisFrequencies::alternating;
      c.order = AxisOrder::x_then_y;
    }
  }
  const double off_x = x.origin + w / 2.0 - 0.5, off_y = y.origin + h / 2.0 - 0.5;
  const double off = by_x ? off_x : off_y;
  const bool both = ladders.has_x && ladders.has_y;
  if (std::abs(off) < 1.0 && (!both || (std::abs(off_x - off_y) < 0.1 && is_near(x.first * w, y.first * h))))
    add(PatchCoordinates::centered, any, 2.0 / length, off);
  if (both && std::abs(off_x) < 0.1 && std::abs(off_y) < 0.1 && w > 1.0 && h > 1.0 &&
      is_near(x.first * (w - 1.0), y.first * (h - 1.0)) && w != h)
    add(PatchCoordinates::linspace, any, 2.0 / (length - 1.0), 0.0);
  if (any.rule == FrequencyRule::theta) {
    const double columns = std::round(both || ladders.has_x ? x.first * w : y.first * h);
    const double rows = std::round(both || ladders.has_y ? y.first * h : x.first * w);
    if (rows >= 1.0 && columns >= 1.0 && rows < 1e6 && columns < 1e6) {
      RopeConvention& c =
          add(PatchCoordinates::scaled_to_reference, any, (by_x ? columns : rows) / length, any.origin);
      c.reference = {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
    }
  }
  if (same) add(PatchCoordinates::index, any, 1.0, any.origin);
  return out;
}

/// The candidate with the shortest numbers that agree with all factors.
std::optional<MeasuredChoices> settle(Candidate candidate, const RopeReading& reading,
                                      const Placement& placement) {
  for (const double factor : short_forms(candidate.factor)) {
    std::vector<double> thetas{candidate.choices.theta};
    const bool has_theta = !candidate.steps.empty();
    if (has_theta) thetas = short_forms(theta_of(candidate, factor));
    for (const double theta : thetas) {
      RopeConvention& c = candidate.choices;
      c.theta = theta;
      c.factor = factor;
      if (!std::isfinite(theta) || theta <= 0.0 || theta > 1e300) continue;
      if (!compare(reading, placement, c, true, kSlack).agrees) continue;
      const Comparison all = compare(reading, placement, c, false, kSlack);
      if (all.agrees) return MeasuredChoices{.choices = c, .error = all.error, .is_theta_known = has_theta};
    }
  }
  return std::nullopt;
}

/// Whether the vectors of each head have lengths in geometric steps, as in encodings by a formula.
bool are_lengths_geometric(std::span<const Slopes> slopes, std::size_t count) {
  if (count < 3) return true;
  for (std::size_t i = 0; i + 2 < slopes.size(); ++i) {
    if (i % count + 2 >= count) continue;  // of two heads
    const auto length = [&](std::size_t k) { return std::hypot(slopes[k].x, slopes[k].y); };
    if (!is_near(length(i) * length(i + 2), length(i + 1) * length(i + 1), 0.02)) return false;
  }
  return true;
}

}  // namespace

Comparison compare(const RopeReading& reading, const Placement& placement, const RopeConvention& convention,
                   bool is_sample, double slack) {
  Comparison out{.agrees = true};
  const FrequencyVectors frequencies = frequency_vectors(convention, reading.head_dim, reading.num_heads);
  // Columns and rows have coordinates of their own: no need to have all patches for a sample.
  const AxisCoordinates axes = axis_coordinates(convention, placement.grid);
  const std::vector<double>&of_column = axes.columns, &of_row = axes.rows;
  const std::size_t in_frame = of_column.size() * of_row.size(), patches = in_frame * placement.num_frames;
  const std::size_t step = is_sample ? std::max<std::size_t>(1, patches / 16) : 1;
  const auto check = [&](std::size_t head, std::size_t token, std::size_t column, double angle) {
    const std::complex<double> found = reading.at(head, token, column);
    const std::array<double, 2> allowed = reading.allowed(head, token, column, angle);
    const double cos = std::abs(found.real() - std::cos(angle)),
                 sin = std::abs(found.imag() - std::sin(angle));
    out.error = std::max({out.error, cos, sin});
    if (cos > slack * allowed[0] || sin > slack * allowed[1]) out.agrees = false;
  };
  for (std::size_t head = 0; head < reading.num_heads; ++head) {
    for (std::size_t token = convention.class_angles ? 1 : 0; token < placement.num_prefix; ++token)
      for (std::size_t column = 0; column < reading.num_columns; ++column) check(head, token, column, 0.0);
    for (std::size_t token = placement.num_tokens() - placement.num_suffix; token < placement.num_tokens();
         ++token)
      for (std::size_t column = 0; column < reading.num_columns; ++column) check(head, token, column, 0.0);
    const std::span<const FrequencyVector> vectors =
        frequencies.of(0, frequencies.num_heads() == 1 ? 0 : head);
    for (std::size_t i = 0; i < patches + step - 1; i += step) {
      const std::size_t patch = std::min(i, patches - 1);  // the last one always
      const std::size_t frame = patch / in_frame;
      const std::size_t in_row = patch % of_column.size(), row = patch % in_frame / of_column.size();
      const double x = of_column[in_row], y = of_row[row];
      const auto t = static_cast<double>(frame);
      for (std::size_t column = 0; column < reading.num_columns; ++column) {
        const FrequencyVector& w = vectors[column];
        check(head, placement.token(frame, row, in_row), column, x * w.x + y * w.y + t * w.t);
      }
      if (is_sample && !out.agrees) return out;
    }
  }
  return out;
}

std::optional<MeasuredChoices> measure_axial(const RopeReading& reading, const Placement& placement) {
  if (reading.num_heads != 1 || reading.partition == Partition::none || reading.head_dim % 4 != 0)
    return std::nullopt;
  double error = 0.0;
  const std::optional<std::vector<Slopes>> slopes = measure_slopes(reading, placement, error);
  if (!slopes) return std::nullopt;
  const std::optional<AxisPairs> axes = split_axes(*slopes, placement.grid);
  if (!axes || axes->x.size() != axes->y.size()) return std::nullopt;
  BothLadders ladders{.x = {}, .y = {}, .grid = placement.grid, .count = axes->x.size()};
  ladders.has_x = placement.grid.columns > 1;
  ladders.has_y = placement.grid.rows > 1;
  const std::vector<Ladder> x = ladders_of(axes->x, true), y = ladders_of(axes->y, false);
  const auto try_ladders = [&]() -> std::optional<MeasuredChoices> {
    for (Candidate& candidate : candidates_of(ladders)) {
      if (candidate.choices.axis_frequencies == AxisFrequencies::alternating &&
          candidate.choices.order != axes->order)
        continue;
      candidate.choices.order = axes->order;
      candidate.choices.channels = axes->are_blocks ? PairLayout::neighbors : PairLayout::alternating;
      if (std::optional<MeasuredChoices> found = settle(candidate, reading, placement)) {
        found->has_axis_blocks = axes->are_blocks;
        return found;
      }
    }
    return std::nullopt;
  };
  if (!ladders.has_x && !ladders.has_y) return std::nullopt;
  for (const Ladder& of_x : ladders.has_x ? x : y) {
    for (const Ladder& of_y : ladders.has_y ? y : x) {
      if (of_x.rule != of_y.rule) continue;
      ladders.x = of_x;
      ladders.y = of_y;
      if (std::optional<MeasuredChoices> found = try_ladders()) return found;
    }
  }
  return std::nullopt;
}

std::optional<MeasuredChoices> measure_line(const RopeReading& reading, const Placement& placement) {
  if (reading.num_heads != 1 || reading.partition == Partition::none ||
      reading.partition == Partition::quarter || placement.grid.rows != 1 || placement.grid.columns < 2)
    return std::nullopt;
  double error = 0.0;
  const std::optional<std::vector<Slopes>> slopes = measure_slopes(reading, placement, error);
  if (!slopes) return std::nullopt;
  for (const Ladder& ladder : ladders_of(*slopes, true)) {
    if (ladder.rule != FrequencyRule::theta) continue;
    Candidate candidate;
    candidate.choices.kind = ConventionKind::line;
    candidate.choices.offset = shifted(ladder.origin);
    set_rule(candidate, ladder, ladder.first);
    if (auto found = settle(candidate, reading, placement)) return found;
  }
  return std::nullopt;
}

std::optional<MeasuredChoices> measure_mixed(const RopeReading& reading, const Placement& placement,
                                             bool has_basis) {
  if (reading.partition == Partition::none || placement.grid.rows < 2 || placement.grid.columns < 2)
    return std::nullopt;
  MeasuredChoices out;
  const std::optional<std::vector<Slopes>> slopes = measure_slopes(reading, placement, out.error);
  if (!slopes) return std::nullopt;
  bool has_both = false, from_zero = true, from_centers = has_basis;
  for (const Slopes& pair : *slopes) {
    has_both = has_both || axis_of(pair, placement.grid) == PairAxis::both;
    from_zero = from_zero && std::abs(pair.phase) < 0.02;
    from_centers =
        from_centers && std::abs(std::remainder(pair.phase - 0.5 * (pair.x + pair.y), kTwoPi)) < 0.02;
  }
  if (!has_both && !has_basis) return std::nullopt;
  out.choices.kind = ConventionKind::mixed;
  out.choices.basis_block = has_basis ? reading.head_dim : 0;
  if (from_centers && !from_zero) out.choices.coordinates = PatchCoordinates::fraction;
  out.are_coordinates_known = from_zero != from_centers;
  out.is_learned =
      has_basis || (reading.num_heads > 1 && !are_lengths_geometric(*slopes, reading.num_columns));
  out.is_theta_known = false;
  return out;
}

}  // namespace vit::internal
