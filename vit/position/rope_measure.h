// The choices of an axial or mixed encoding, measured from its factors: slopes of the angles along rows and
// columns, then the ladder of frequencies, then coordinates. What is measured is rounded to short numbers and
// checked against all factors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vit/position/conventions.h"
#include "vit/position/rope_evidence.h"

namespace vit::internal {

/// The patches among the tokens of a reading.
struct Placement {
  GridSize grid;
  std::size_t num_frames = 1;
  std::size_t num_prefix = 0;

  std::size_t num_tokens() const { return num_prefix + num_frames * grid.rows * grid.columns; }
};

/// Difference of measured factors from a convention.
struct Comparison {
  bool agrees = false;  // everywhere within rounding
  double error = 0.0;   // largest difference of a cosine or sine
};

/// Compares all tokens with a convention, those of the prefix with "not rotated" (but for a class token with
/// learned angles); or, if it is a sample, some.
/// It agrees if differences are at most `slack` times those that rounding explains.
Comparison compare(const RopeReading& reading, const Placement& placement,
                   const position::RopeConvention& convention, bool is_sample, double slack = 1.0);

/// Choices that agree with a reading.
struct MeasuredChoices {
  position::RopeConvention choices;
  double error = 0.0;
  bool is_order_known = true, is_theta_known = true, are_coordinates_known = true;
  bool is_learned = false;      // mixed: heads differ, and lengths of the vectors are no ladder
  bool has_axis_blocks = true;  // the pairs of one axis, then those of the other; else pair by pair
};

/// The choices of an encoding in which each angle has one axis, or nothing if the reading follows none on
/// this grid.
std::optional<MeasuredChoices> measure_axial(const RopeReading& reading, const Placement& placement);
/// The same of one in which angles may have both axes, with coordinates counted from 0.
std::optional<MeasuredChoices> measure_mixed(const RopeReading& reading, const Placement& placement);

}  // namespace vit::internal
