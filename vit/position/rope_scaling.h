// Rotary positions on a grid other than the trained one: which coordinates and frequencies a rule of
// RopeScaling makes of the trained ones. Symbols: s = length of an axis over its trained length; f_0 the
// highest frequency; L = trained length of an axis in units of the coordinates; r = L f / (2 pi), the turns
// of a pair over it. At s = 1 every rule changes nothing, to the bit.
#pragma once

#include <string>
#include <string_view>

#include "vit/position/coordinates.h"
#include "vit/position/frequencies.h"

namespace vit::position {

/// One axis of a grid, compared with that of the trained grid.
struct AxisScale {
  double scale = 1.0;         // s: its length over the trained length
  double trained_span = 1.0;  // L: trained length, in units of the coordinates
};

/// Scales of both axes.
struct GridScale {
  AxisScale x;  // columns
  AxisScale y;  // rows
  /// s = 1 on both axes.
  bool is_one() const noexcept { return x.scale == 1.0 && y.scale == 1.0; }
};

/// s and L of both axes; RopeScaling chooses s by its axes and factor. L is the trained number of columns or
/// rows, G_ref for scaled_to_reference, G_ref - 1 for corners, 2 for centered. Throws Error if a side of a
/// grid is zero.
VIT_API GridScale grid_scale(GridSize grid, GridSize trained, const CoordinateOptions& options,
                             const RopeScaling& scaling);

/// Coordinates that go on with the trained steps, G patches on an axis that was trained with G_0:
///   index                i + offset
///   scaled_to_reference  (i + offset) / G_0 * G_ref
///   corners              i (G_ref - 1) / (G_0 - 1), 0 for G_0 = 1
///   centered             2 (i + 0.5 + offset) / G_0 - G / G_0
/// On the trained grid they are those of grid_coords(). Divided by s = G / G_0 those of scaled_to_reference
/// and centered are what grid_coords() gives on any grid: these families scale linearly. Throws Error as
/// grid_coords().
VIT_API GridCoords extrapolated_coords(GridSize grid, GridSize trained,
                                       const CoordinateOptions& options = {});

/// The rule that applies if none is given: none for index, linear for the others.
VIT_API RopeScalingRule default_scaling_rule(CoordinateRule rule) noexcept;

/// The frequencies of one axis for counted coordinates.
///   none    f
///   linear  f / s
///   ntk     f_k s^(-k / (F - 1)): f_0 stays, f_(F-1) is divided by s. For f_k = theta^(-k/F) this is
///           the base theta s^(D / (D - 2)) of "NTK-aware" and FiT's VisionNTK, D = 2F channels. F = 1: f_0
///           stays.
///   yarn    f (g + (1 - g) / s), g = ln(r / beta_slow) / ln(beta_fast / beta_slow), cut to [0, 1]. The ramp
///           is linear in ln f, as in the published code of YaRN, FiT and transformers; the paper's is linear
///           in r. That code rounds the ends of the ramp to indices of the frequencies: k(beta) = ln(r_0 /
///           beta) / h is the index, not an integer, at which a pair makes beta turns, h = ln(f_0 / f_(F-1))
///           / (F - 1), and with
///   yarn, truncate
///           g = 1 - (k - low) / (high - low), cut to [0, 1], low = max(floor k(beta_fast), 0),
///           high = min(ceil k(beta_slow), 2F - 1), or low + 0.001 where that is no larger. Without rounding,
///           `truncate: false` of transformers still has low >= 0 and high <= 2F - 1, which is not offered.
VIT_API RopeFrequencies scale_frequencies(const RopeFrequencies& frequencies, const RopeScaling& scaling,
                                          AxisScale axis);

/// Learned frequencies of both axes, which have no order: the turns of a pair over the trained grid,
/// r = |(L_x x, L_y y)| / (2 pi), replace its index; both its numbers are divided by s_x^p and s_y^p, or as
/// yarn does.
///   ntk     p = 1 - ln r / ln r_max, cut to [0, 1], r_max over the pairs of the head: the fastest pair
///           stays, pairs of one turn and less are divided by s (no publication; the rule above where
///           f_(F-1) makes one turn). p = 1 where r_max is 1 or less.
/// Throws Error (argument) for truncate, which is a rounding on a ladder.
VIT_API MixedFrequencies scale_frequencies(const MixedFrequencies& frequencies, const RopeScaling& scaling,
                                           const GridScale& scale);

/// What the logits of attention are multiplied by, of all tokens: the square of yarn's attention factor (as
/// of queries and keys), times the temperature. 1 on the trained grid.
VIT_API double logit_factor(const RopeScaling& scaling, const GridScale& scale, GridSize grid,
                            GridSize trained);

/// From "yarn,beta_fast=2,temperature=log". Keys: axes (each, common), factor, temperature (none, log);
/// with yarn beta_fast, beta_slow, truncate (true, false), attention_factor. Throws Error (argument) naming
/// the part that is not understood or out of range, and what is known.
VIT_API RopeScaling parse_rope_scaling(std::string_view value);
/// What parse_rope_scaling() reads: the rule and every value that is not its default.
VIT_API std::string to_string(const RopeScaling& scaling);
/// Throws Error (argument) naming the number out of range.
VIT_API void validate(const RopeScaling& scaling);

}  // namespace vit::position
