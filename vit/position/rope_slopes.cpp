#include "vit/position/rope_slopes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

namespace vit::internal {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

/// Factors of one pair over the patches of one frame.
class PairGrid {
 public:
  PairGrid(const RopeReading& reading, const Placement& placement, std::size_t head, std::size_t column)
      : reading_(reading), placement_(placement), head_(head), column_(column) {}

  std::size_t token(std::size_t row, std::size_t column) const { return placement_.token(0, row, column); }
  std::complex<double> at(std::size_t row, std::size_t column) const {
    return reading_.at(head_, token(row, column), column_);
  }

  /// Whether steps at a few places are alike: most grids are ruled out before all patches are read.
  bool is_plausible() const {
    const GridSize grid = placement_.grid;
    const std::array<double, 2> rounding = reading_.allowed(head_, token(0, 0), column_, 0.75);
    const double slack = 8.0 * (rounding[0] + rounding[1]) + 1e-5;
    for (const bool along_columns : {true, false}) {
      if ((along_columns ? grid.columns : grid.rows) < 2) continue;
      const std::complex<double> first = (along_columns ? at(0, 1) : at(1, 0)) * std::conj(at(0, 0));
      for (std::size_t i = 1; i <= 16; ++i) {
        const std::size_t row = (grid.rows - (along_columns ? 1 : 2)) * i / 16;
        const std::size_t column = (grid.columns - (along_columns ? 2 : 1)) * i / 16;
        const std::complex<double> next = along_columns ? at(row, column + 1) : at(row + 1, column);
        if (std::abs(next * std::conj(at(row, column)) - first) > slack) return false;
      }
    }
    return true;
  }

  /// Change of the angle for a step along columns or rows. The mean over one step is refined over longer and
  /// longer ones.
  double slope(bool along_columns) const {
    const std::size_t length = along_columns ? placement_.grid.columns : placement_.grid.rows;
    double slope = 0.0;
    for (std::size_t step = 1; step < length;
         step = std::min(2 * step, step + 1 == length ? length : length - 1)) {
      const double guess = slope * static_cast<double>(step);
      const double found = mean_turn(along_columns, step);
      slope = (guess + std::remainder(found - guess, kTurn)) / static_cast<double>(step);
    }
    return slope;
  }

  double phase(double x, double y) const {
    std::complex<double> sum;
    for (std::size_t row = 0; row < placement_.grid.rows; ++row) {
      for (std::size_t column = 0; column < placement_.grid.columns; ++column) {
        const double angle = x * static_cast<double>(column) + y * static_cast<double>(row);
        sum += at(row, column) * std::polar(1.0, -angle);
      }
    }
    return std::arg(sum);
  }

  /// Whether the angles grow evenly: factors differ from those of the slopes only by rounding.
  bool is_linear(const Slopes& slopes, double& error) const {
    for (std::size_t row = 0; row < placement_.grid.rows; ++row) {
      for (std::size_t column = 0; column < placement_.grid.columns; ++column) {
        const double angle =
            slopes.x * static_cast<double>(column) + slopes.y * static_cast<double>(row) + slopes.phase;
        const double difference = std::abs(at(row, column) - std::polar(1.0, angle));
        const auto [of_cos, of_sin] = reading_.allowed(head_, token(row, column), column_, angle);
        if (difference > 3.0 * (of_cos + of_sin)) return false;
        error = std::max(error, difference);
      }
    }
    return true;
  }

 private:
  double mean_turn(bool along_columns, std::size_t step) const {
    const GridSize grid = placement_.grid;
    std::complex<double> sum;
    for (std::size_t row = 0; row + (along_columns ? 0 : step) < grid.rows; ++row) {
      for (std::size_t column = 0; column + (along_columns ? step : 0) < grid.columns; ++column) {
        const std::complex<double> next = along_columns ? at(row, column + step) : at(row + step, column);
        sum += next * std::conj(at(row, column));
      }
    }
    return std::arg(sum);
  }

  const RopeReading& reading_;
  const Placement& placement_;
  std::size_t head_, column_;
};

double unwrapped(double measured, double guess) {
  return guess + std::remainder(measured - guess, kTurn);
}

/// From the slowest pair to the fastest one, whose steps may exceed half a turn.
std::optional<Ladder> geometric(std::span<const double> f) {
  const std::size_t count = f.size();
  Ladder out{.first = f[0], .last = f[count - 1], .steps = {f.begin(), f.end()}};
  if (count == 1) return out;
  if (f[count - 1] == 0.0 || f[count - 2] / f[count - 1] <= 0.0) return std::nullopt;
  out.ratio = f[count - 2] / f[count - 1];
  out.first = f[count - 2];
  for (std::size_t k = count - 2; k-- > 0;) {
    const double guess = out.first * out.ratio;
    out.first = unwrapped(f[k], guess);
    if (std::abs(out.first - guess) > 0.1 * std::abs(guess)) return std::nullopt;
    out.steps[k] = out.first;
    out.ratio = std::pow(out.first / out.last, 1.0 / static_cast<double>(count - 1 - k));
  }
  return out;
}

std::optional<Ladder> evenly_spaced(std::span<const double> f) {
  const std::size_t count = f.size();
  if (count < 3) return std::nullopt;
  Ladder out{
      .rule = position::FrequencyRule::pixel, .first = f[0], .last = f[1], .steps = {f.begin(), f.end()}};
  for (std::size_t k = 2; k < count; ++k) {
    const double guess = out.last + (out.last - out.first) / static_cast<double>(k - 1);
    out.last = unwrapped(f[k], guess);
    if (std::abs(out.last - guess) > 0.1 * std::abs(guess - out.first)) return std::nullopt;
    out.steps[k] = out.last;
  }
  return out;
}

/// Where coordinates are 0: from the slowest pair, whose phase is no turn and more, to the fastest, whose is
/// the most exact.
double origin_of(const Ladder& ladder, std::span<const Slopes> pairs) {
  const bool rises = ladder.rule == position::FrequencyRule::pixel;
  const std::size_t count = pairs.size();
  double origin = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = rises ? i : count - 1 - i;
    if (ladder.steps[k] == 0.0) continue;
    origin = unwrapped(pairs[k].phase, i == 0 ? 0.0 : origin * ladder.steps[k]) / ladder.steps[k];
  }
  return origin;
}

}  // namespace

std::optional<std::vector<Slopes>> measure_slopes(const RopeReading& reading, const Placement& placement,
                                                  double& error) {
  std::vector<Slopes> out;
  for (std::size_t head = 0; head < reading.num_heads; ++head) {
    for (std::size_t column = 0; column < reading.num_columns; ++column) {
      const PairGrid pair(reading, placement, head, column);
      if (!pair.is_plausible()) return std::nullopt;
      Slopes slopes{.x = pair.slope(true), .y = pair.slope(false)};
      slopes.phase = pair.phase(slopes.x, slopes.y);
      if (!pair.is_linear(slopes, error)) return std::nullopt;
      out.push_back(slopes);
    }
  }
  return out;
}

PairAxis axis_of(const Slopes& slopes, GridSize grid) {
  const double x = std::abs(slopes.x) * static_cast<double>(grid.columns - 1);
  const double y = std::abs(slopes.y) * static_cast<double>(grid.rows - 1);
  if (std::max(x, y) < 1e-12) return PairAxis::neither;
  constexpr double kNoise = 0.02;  // of the other axis
  if (y <= kNoise * x) return PairAxis::x;
  if (x <= kNoise * y) return PairAxis::y;
  return PairAxis::both;
}

std::optional<AxisPairs> split_axes(std::span<const Slopes> pairs, GridSize grid) {
  std::vector<bool> is_x;
  for (const Slopes& slopes : pairs) {
    switch (axis_of(slopes, grid)) {
      case PairAxis::x: is_x.push_back(true); break;
      case PairAxis::y: is_x.push_back(false); break;
      case PairAxis::both: return std::nullopt;
      case PairAxis::neither:
        if (grid.columns > 1 && grid.rows > 1) return std::nullopt;
        is_x.push_back(grid.columns == 1);
        break;
    }
  }
  const std::size_t half = is_x.size() / 2;
  AxisPairs out{.x = {}, .y = {}, .order = is_x[0] ? AxisOrder::x_then_y : AxisOrder::y_then_x};
  bool blocks = true, alternate = true;
  for (std::size_t j = 0; j < is_x.size(); ++j) {
    blocks = blocks && is_x[j] == ((j < half) == is_x[0]);
    alternate = alternate && is_x[j] == ((j % 2 == 0) == is_x[0]);
    (is_x[j] ? out.x : out.y).push_back(pairs[j]);
  }
  if (!blocks && !alternate) return std::nullopt;
  out.are_blocks = blocks;
  return out;
}

std::vector<Ladder> ladders_of(std::span<const Slopes> pairs, bool is_x) {
  std::vector<double> f;
  for (const Slopes& slopes : pairs) f.push_back(is_x ? slopes.x : slopes.y);
  std::vector<Ladder> out;
  for (const std::optional<Ladder>& ladder : {geometric(f), evenly_spaced(f)}) {
    if (!ladder || ladder->first == 0.0) continue;
    out.push_back(*ladder);
    out.back().origin = origin_of(out.back(), pairs);
  }
  return out;
}

}  // namespace vit::internal
