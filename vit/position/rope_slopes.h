// Slopes of the angles of pairs along the columns and rows of a grid, measured from their factors, and the
// ladders of frequencies that they form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vit/position/rope_measure.h"

namespace vit::internal {

/// Angle of a pair: x * column + y * row + phase.
struct Slopes {
  double x = 0.0, y = 0.0, phase = 0.0;
};

/// Slopes of all pairs of all heads, or nothing if an angle does not grow evenly. `error` becomes the largest
/// difference of a factor, if it is larger.
std::optional<std::vector<Slopes>> measure_slopes(const RopeReading& reading, const Placement& placement,
                                                  double& error);

enum class PairAxis { x, y, both, neither };

/// The axes along which an angle grows: one if the other has only noise.
PairAxis axis_of(const Slopes& slopes, GridSize grid);

/// The pairs of each axis, in their order.
struct AxisPairs {
  std::vector<Slopes> x, y;
  AxisOrder order = AxisOrder::x_then_y;
  bool are_blocks = true;  // those of one axis, then those of the other; else pair by pair
};

/// Nothing if a pair has both axes, or the axes follow each other otherwise.
std::optional<AxisPairs> split_axes(std::span<const Slopes> pairs, GridSize grid);

/// Frequencies of one axis in radians per patch: geometric or evenly spaced, unwrapped beyond half a turn per
/// patch.
struct Ladder {
  position::FrequencyRule rule = position::FrequencyRule::theta;
  double first = 0.0;           // f_0
  double last = 0.0;            // f_(F-1)
  double ratio = 1.0;           // f_k / f_(k+1), theta
  std::vector<double> steps{};  // (F), f_0 .. f_(F-1)
  double origin = 0.0;          // where coordinates are 0, in patches; added to the index
};

/// The ladders that the frequencies of one axis form: geometric or evenly spaced, or both, or none.
std::vector<Ladder> ladders_of(std::span<const Slopes> pairs, bool is_x);

}  // namespace vit::internal
