// The published conventions of rotary positions in vision as data, and their tables in double, in the channel
// order in which the families store q and k. Letters: N = patches, d = channels of a head, A = angles of a
// head, P = prefix tokens.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/coordinates.h"
#include "vit/position/frequencies.h"

namespace vit::position {

/// Order of the channels of a head; a and b are the axes, equal letter and number are a pair.
enum class PairLayout {
  neighbors,       // a0 a0 a1 a1 b0 b0 b1 b1
  halves,          // a0 a1 b0 b1 a0 a1 b0 b1
  alternating,     // a0 a0 b0 b0 a1 a1 b1 b1   (MoonViT)
  halves_by_axis,  // a0 a1 a0 a1 b0 b1 b0 b1   (CroCo, Gemma 4)
};

/// Formula of the frequencies of an axis.
enum class FrequencyRule {
  theta,    // theta^(-k / F)
  periods,  // 1 / period, geometric from the shortest to the longest
  pixel,    // pi linspace(1, max_frequency / 2, F)
};

/// One convention: the five choices, and what single families add.
struct RopeConvention {
  std::string name;                   // "dinov3"; empty if it is not published
  std::vector<std::string> families;  // "DINOv3", "Sapiens2"
  RopeKind kind = RopeKind::axial;    // which coordinates rotate a pair

  CoordinateRule coordinates = CoordinateRule::index;  // of patch i of G
  double offset = 0.0;                                 // added to the index of a patch
  GridSize reference{};                                // G_ref of scaled coordinates
  bool is_reference_native = false;  // G_ref is the native grid of a model; `reference` is an example
  std::size_t window = 0;  // coordinates count from the corner of windows of so many patches; 0 = of the grid
  AxisOrder order = AxisOrder::x_then_y;        // axis of the first half of the angles
  PairLayout channels = PairLayout::neighbors;  // which channels are a pair

  FrequencyRule rule = FrequencyRule::theta;                   // how the frequencies are computed
  double theta = 10000.0;                                      // base, of theta
  PeriodRange periods{};                                       // of periods
  double max_frequency = 0.0;                                  // of pixel
  double factor = 1.0;                                         // of all frequencies
  AxisFrequencies axis_frequencies = AxisFrequencies::shared;  // of the two axes
  bool class_angles = false;                                   // the class token is rotated by learned angles
};

/// All published ones, simple ones first. Two that agree on a grid are named by the first.
VIT_API std::span<const RopeConvention> rope_conventions();
/// By the name of a convention or of a family; case, spaces, hyphens and what follows in parentheses do not
/// count. Null if there is none.
VIT_API const RopeConvention* find_rope_convention(std::string_view name);
/// The formula of an angle on one line: "angle = (i + 1) 10000^(-4k/d); ...".
VIT_API std::string formula(const RopeConvention& convention);

/// "index", "scaled", "centered".
VIT_API std::string_view to_string(CoordinateRule rule);
/// "xy", "yx".
VIT_API std::string_view to_string(AxisOrder order);
/// "neighbors", "halves", "alternating", "halves_by_axis".
VIT_API std::string_view to_string(PairLayout channels);
/// "theta", "periods", "pixel".
VIT_API std::string_view to_string(FrequencyRule rule);
/// neighbors or halves: how a pair's channels lie, whatever the order of the axes.
VIT_API RopePairing pairing_of(PairLayout channels);

/// Two channels of a head that an angle rotates: to (p cos a - q sin a, q cos a + p sin a).
struct ChannelPair {
  std::size_t p = 0;  // first channel
  std::size_t q = 0;  // second channel
  bool operator==(const ChannelPair&) const = default;
};

/// The d / 2 pairs, in the order of the angles. Throws Error if 4 does not divide d.
VIT_API std::vector<ChannelPair> channel_pairs(PairLayout channels, std::size_t head_dim);

/// Coordinates of the patches of a grid, or of a clip of several frames.
VIT_API GridCoords coordinates(const RopeConvention& convention, GridSize grid, std::size_t num_frames = 1);
/// Frequencies of the angles in the stored order: d / 2, or d if the channels of a pair have different ones;
/// of two heads for mixed, whose learned numbers are replaced by those that training starts from. Throws
/// Error if the convention does not fit d.
VIT_API FrequencyVectors frequency_vectors(const RopeConvention& convention, std::size_t head_dim);
/// per_channel for V-JEPA 2, else per_pair.
VIT_API RopeAngles angles_per(const RopeConvention& convention);

/// Rotates x (B, L, H, d) in place by angles (N, A) or (H, N, A) with N = L - P; the first P tokens are
/// unchanged. Throws Error naming the shapes if they do not fit.
VIT_API void rotate_pairs(TensorView<double> x, TensorView<const double> angles,
                          std::span<const ChannelPair> pairs, RopeAngles per, std::size_t num_prefix = 0);

}  // namespace vit::position
