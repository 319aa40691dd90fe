// The choices of an axial or mixed encoding, measured from its factors: slopes of the angles along rows and
// columns, then the ladder of frequencies, then coordinates. What is measured is rounded to short numbers and
// checked against all factors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vit/position/convention_tables.h"
#include "vit/position/rope_evidence.h"
#include "vit/position/rope_placements.h"

namespace vit::internal {

/// Difference of measured factors from a convention.
struct Comparison {
  bool agrees = false;  // everywhere within rounding
  double error = 0.0;   // largest difference of a cosine or sine
};

/// Compares all tokens with a convention, those before and after the patches with "not rotated" (but for a
/// class token with learned angles); or, if it is a sample, some.
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
/// The same of an encoding of positions in a sequence: a grid of one row.
std::optional<MeasuredChoices> measure_line(const RopeReading& reading, const Placement& placement);
/// The same of one in which angles may have both axes, with coordinates counted from 0; in a basis
/// also with one axis, and coordinates of the centers of patches.
std::optional<MeasuredChoices> measure_mixed(const RopeReading& reading, const Placement& placement,
                                             bool has_basis);

}  // namespace vit::internal
