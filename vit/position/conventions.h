// The published conventions of rotary positions in vision as data; convention_tables.h has their tables.
// Letters: d = channels of a head, F = frequencies of an axis, G = patches along an axis.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/position/config.h"
#include "vit/position/frequencies.h"

namespace vit::position {

/// Order of the channels of a head; a and b are the axes, equal letter and number are a pair.
enum class PairLayout {
  neighbors,       // a0 a0 a1 a1 b0 b0 b1 b1
  halves,          // a0 a1 b0 b1 a0 a1 b0 b1
  alternating,     // a0 a0 b0 b0 a1 a1 b1 b1   (MoonViT)
  halves_by_axis,  // a0 a1 a0 a1 b0 b1 b0 b1   (CroCo, Gemma 4)
};

/// Coordinate of patch i of G along one axis.
enum class PatchCoordinates {
  index,                // i + offset
  scaled_to_reference,  // (i + offset) / G * G_ref
  centered,             // 2 (i + 0.5 + offset) / G - 1
  corners,              // i (G_ref - 1) / (G - 1): the first patch at 0, the last at G_ref - 1 (V-JEPA 2.1)
  linspace,             // 2 i / (G - 1) - 1: the first patch at -1, the last at 1 (RvT)
  fraction,             // (i + 0.5) / G (ComRoPE)
};

/// Formula of the frequencies of an axis.
enum class FrequencyRule {
  theta,      // theta^(-k / F)
  periods,    // 1 / period, geometric from the shortest to the longest
  pixel,      // pi linspace(1, max_frequency / 2, F)
  exp_pi,     // exp(-pi k / F)
  geometric,  // from the lowest to the highest (golden gate)
};

/// Which coordinates an angle has, and in which order.
enum class ConventionKind {
  axial,           // an axis each, those of one axis after those of the other
  mixed,           // both axes, by learned numbers
  volume,          // a third each for time, row and column; the rest is not rotated
  volume_in_turn,  // time, row and column in turn
  spiral,          // directions k pi / K, perpendicular ones with the same frequencies
  golden_gate,     // directions that turn by pi (sqrt 5 - 1) / 2 from pair to pair and head to head
  golden_gate_nd,  // quasi-random directions of pairs and heads
  line,            // the position in a sequence: the column of a grid of one row
};

/// One convention: the five choices, and what single families add.
struct RopeConvention {
  std::string name;                             // "dinov3"; empty if it is not published
  std::vector<std::string> families;            // "DINOv3", "Sapiens2"
  ConventionKind kind = ConventionKind::axial;  // which coordinates rotate a pair

  PatchCoordinates coordinates = PatchCoordinates::index;  // of patch i of G
  double offset = 0.0;                                     // added to the index of a patch
  GridSize reference{};                                    // G_ref of scaled coordinates and corners
  bool is_reference_native = false;  // G_ref is the native grid of a model; `reference` is an example
  bool keeps_aspect = false;         // coordinates times sqrt(W / H) and sqrt(H / W) (golden gate)
  std::size_t window = 0;  // coordinates count from the corner of windows of so many patches; 0 = of the grid
  AxisOrder order = AxisOrder::x_then_y;        // axis of the first half of the angles
  PairLayout channels = PairLayout::neighbors;  // which channels are a pair
  RopeAngles angles = RopeAngles::per_pair;     // per_channel: V-JEPA 2, which is no rotation

  FrequencyRule rule = FrequencyRule::theta;                   // how the frequencies are computed
  double theta = 10000.0;                                      // base, of theta
  PeriodRange periods{};                                       // of periods
  double max_frequency = 0.0;                                  // of pixel
  double lowest = 0.0;                                         // of geometric
  double highest = 0.0;                                        // of geometric
  double factor = 1.0;                                         // of all frequencies
  AxisFrequencies axis_frequencies = AxisFrequencies::shared;  // of the two axes
  std::size_t num_directions = 0;                              // K of spiral
  bool class_angles = false;                                   // the class token is rotated by learned angles
  std::size_t basis_block = 0;  // learned basis of q and k in blocks of so many channels; 0 = none
};

/// All published ones, simple ones first. Two that agree on a grid are named by the first.
VIT_API std::span<const RopeConvention> rope_conventions();
/// By the name of a convention or of a family; case, spaces, hyphens and what follows in parentheses do not
/// count. Null if there is none.
VIT_API const RopeConvention* find_rope_convention(std::string_view name);
/// The formula of an angle on one line: "angle = (i + 1) 10000^(-4k/d); ...".
VIT_API std::string formula(const RopeConvention& convention);

/// "index", "scaled", "centered", "corners", "linspace", "fraction".
VIT_API std::string_view to_string(PatchCoordinates rule);
/// "xy", "yx".
VIT_API std::string_view to_string(AxisOrder order);
/// Axes in their order: "xy", "yx", "tyx", "x" of a line; "xy" of directions.
VIT_API std::string_view order_of(const RopeConvention& convention);
/// "neighbors", "halves", "alternating", "halves_by_axis".
VIT_API std::string_view to_string(PairLayout channels);
/// "theta", "periods", "pixel", "exp_pi", "geometric".
VIT_API std::string_view to_string(FrequencyRule rule);
/// The same of a convention, or "learned".
VIT_API std::string_view rule_of(const RopeConvention& convention);
/// neighbors or halves: how a pair's channels lie, whatever the order of the axes.
VIT_API RopePairing pairing_of(PairLayout channels);

}  // namespace vit::position
