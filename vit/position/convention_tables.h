// Coordinates, frequencies and channel pairs of the conventions, in double, in the channel order in which the
// families store q and k. Letters: N = patches, d = channels of a head, A = angles of a head, L = tokens, H =
// heads, P = prefix tokens.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/conventions.h"
#include "vit/position/coordinates.h"

namespace vit::position {

/// Two channels of a head that an angle rotates: to (p cos a - q sin a, q cos a + p sin a).
struct ChannelPair {
  std::size_t p = 0;  // first channel
  std::size_t q = 0;  // second channel
  bool operator==(const ChannelPair&) const = default;
};

/// The d / 2 pairs, in the order of the angles. Throws Error if d is odd, or 4 does not divide it and the
/// axes share halves.
VIT_API std::vector<ChannelPair> channel_pairs(PairLayout channels, std::size_t head_dim);
/// Those that a convention rotates: halves of time, row and column (MiniMax-M3) leave channels at the end.
VIT_API std::vector<ChannelPair> channel_pairs(const RopeConvention& convention, std::size_t head_dim);

/// Heads of how many channels a convention has: at least `smallest`, in multiples of `step`.
struct HeadSizes {
  std::size_t smallest = 0;  // channels
  std::size_t step = 0;      // channels
  /// Whether a head of so many channels is one of them.
  bool contain(std::size_t head_dim) const {
    return step != 0 && head_dim >= smallest && head_dim % step == 0;
  }
};
/// The sizes that a convention fits.
VIT_API HeadSizes head_sizes(const RopeConvention& convention);

/// Whether time is an axis.
VIT_API bool has_time(const RopeConvention& convention);
/// Whether heads have angles of their own.
VIT_API bool has_heads(const RopeConvention& convention);
/// Coordinates of the patches of a grid, or of a clip of several frames. Throws Error if a side of one
/// patch has linspace, or a line has several rows.
VIT_API GridCoords coordinates(const RopeConvention& convention, GridSize grid, std::size_t num_frames = 1);
/// Coordinates along the axes of a grid; those of a patch are one of each.
struct AxisCoordinates {
  std::vector<double> columns;  // (W)
  std::vector<double> rows;     // (H)
};
/// Coordinates along the axes of a grid. Throws Error as coordinates().
VIT_API AxisCoordinates axis_coordinates(const RopeConvention& convention, GridSize grid);
/// Frequencies of the angles in the stored order: d / 2 or those that are rotated, or d if the channels of a
/// pair have different ones; of each of `num_heads` heads where they differ. Learned numbers are replaced by
/// those that training starts from. Throws Error if the convention does not fit d.
VIT_API FrequencyVectors frequency_vectors(const RopeConvention& convention, std::size_t head_dim,
                                           std::size_t num_heads = 2);
/// (d, d), an orthogonal basis in place of a learned one, in blocks of channels; empty if there is none.
VIT_API Tensor<double> example_basis(const RopeConvention& convention, std::size_t head_dim);

/// The direction of change_basis().
enum class BasisChange {
  into,  // B x
  back,  // B^T x
};
/// Changes the basis of x (B, L, H, d) in place; the first P of the L tokens are unchanged. Throws Error if
/// the basis is not (d, d).
VIT_API void change_basis(TensorView<double> x, const Tensor<double>& basis, BasisChange direction,
                          std::size_t num_prefix = 0);

/// Rotates x (B, L, H, d) in place by angles (N, A) or (H, N, A) with N = L - P; the first P tokens are
/// unchanged. Throws Error naming the shapes if they do not fit.
VIT_API void rotate_pairs(TensorView<double> x, TensorView<const double> angles,
                          std::span<const ChannelPair> pairs, RopeAngles per, std::size_t num_prefix = 0);

}  // namespace vit::position
