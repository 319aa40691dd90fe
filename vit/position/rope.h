// Rotary position encodings, free of any model: coordinates.h -> frequencies.h -> angles -> factors cos + i
// sin, and the rotation in its plain form; the optimized one is left to the kernels, which read the same
// RopeFactors. In double, rounded once. Letters: B = images, L = tokens, N = patches of a grid, row-major, H
// = heads, d = channels of a head: d / 2 channel pairs, A = angles of a head, F = frequencies: d / 4 per axis
// in 2D, d / 2 in 1D.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/position/coordinates.h"
#include "vit/position/frequencies.h"
#include "vit/position/rope_scaling.h"  // IWYU pragma: export

namespace vit::position {

/// A view of rotary factors; owned by a RopeTable or PositionContext. Angle a of pair j rotates channels (p,
/// q) to (x_p cos a - x_q sin a, x_q cos a + x_p sin a):
///   neighbors: | x0 x1 | x2 x3 |   p = 2j, q = 2j + 1
///   halves:     | x0 x1 ' x2 x3 |   p = j,  q = j + d / 2
/// With an angle per channel, x_p takes angle p and x_q angle q. Angle a of patch n and head h is stored at
/// h * head_stride + n * A + a.
template <typename T>
struct BasicRopeFactors {
  const T* cos = nullptr;                        // (N, A), or (H, N, A); null if nothing is rotated: N is 0
  const T* sin = nullptr;                        // as cos
  std::size_t num_patches = 0;                   // N: patches of the grid
  std::size_t pairs = 0;                         // d / 2
  std::size_t head_stride = 0;                   // 0 if all heads share one table, else N * A
  RopePairing pairing = RopePairing::neighbors;  // channels of a pair
  std::size_t num_heads = 1;                     // heads with a table of their own; 1 if all share one
  RopeAngles angles = RopeAngles::per_pair;      // how many angles a pair has

  /// A: angles of a patch and head, d / 2 or d.
  std::size_t num_angles() const noexcept { return vit::num_angles(angles, 2 * pairs); }
};
/// Factors as the kernels take them.
using RopeFactors = BasicRopeFactors<float>;

/// (L, F): angle = position * frequency, one-dimensional.
VIT_API Tensor<double> angles_1d(std::span<const double> positions, const RopeFrequencies& frequencies);

/// (N, A) angles, or (H, N, A) if the vectors have heads: w_x t_x + w_y t_y, + w_t t_t for a clip. Throws
/// Error if the coordinates of the axes differ in number, or there is no such layer.
VIT_API Tensor<double> rope_angles(const GridCoords& coords, const FrequencyVectors& frequencies,
                                   std::size_t layer = 0);

/// (N, 2F): the angles of one axis, then those of the other, both with the same F = d / 4 frequencies.
VIT_API Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& frequencies,
                                    AxisOrder order);
/// (N, 2F) angles with frequencies of each axis, F of either. Throws Error if their numbers differ.
VIT_API Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& x,
                                    const RopeFrequencies& y, AxisOrder order);

/// (H, N, d / 2): t_x * x(layer, head) + t_y * y(layer, head), both axes in every angle; with y_then_x the
/// first frequencies belong to t_y.
VIT_API Tensor<double> mixed_angles(const GridCoords& coords, const MixedFrequencies& frequencies,
                                    std::size_t layer, AxisOrder order = AxisOrder::x_then_y);

/// (frames h w, d): angles of the channels of V-JEPA 2, frame by frame and row by row. With e = 2
/// floor(floor(d / 3) / 2) channels for each of time, row and column, channel i of an axis is rotated by
/// coordinate * theta^(-2 (i mod (e / 2)) / e); the other d - 3 e channels are unchanged.
VIT_API Tensor<double> volume_angles(std::size_t num_frames, GridSize grid, std::size_t head_dim,
                                     double theta);

/// Owns the complex factors of a grid: cosines and sines of angles in double, rounded once to T (double or
/// float). Immutable; safe to share between threads.
/// ```
/// using namespace vit::position;
/// const GridCoords coords = grid_coords({.rows = 14, .columns = 20});
/// const RopeFrequencies frequencies = RopeFrequencies::from_theta(num_axial_frequencies(64), 100.0);
/// const RopeTable<float> table = build_axial_table<float>(coords, frequencies);
/// vit::Tensor<float> queries(vit::Shape{1, 1 + 280, 3, 64});  // (B, T, H, d)
/// rotate(queries.view(), table, 1);                           // the class token stays
/// ```
template <typename T>
class VIT_API RopeTable {
 public:
  /// `angles` is (N, A), shared by all heads, or (H, N, A), A = d / 2 with an angle per pair or d with one
  /// per channel. Throws Error on another rank, an empty side, an odd number of channels, or an angle that is
  /// not finite.
  RopeTable(TensorView<const double> angles, RopePairing pairing, RopeAngles per = RopeAngles::per_pair);

  std::size_t num_heads() const noexcept { return num_heads_; }      // 1 if all heads share one table
  std::size_t num_patches() const noexcept { return num_patches_; }  // N: patches of the grid
  std::size_t num_angles() const noexcept { return num_angles_; }    // A: of a patch and head
  std::size_t num_pairs() const noexcept;                            // d / 2
  RopePairing pairing() const noexcept { return pairing_; }          // channels of a pair
  RopeAngles angles() const noexcept { return angles_; }             // how many angles a pair has

  TensorView<const T> cos() const noexcept VIT_LIFETIME_BOUND { return cos_.view(); }  // shape of the angles
  TensorView<const T> sin() const noexcept VIT_LIFETIME_BOUND { return sin_.view(); }  // as cos()
  /// The factor of one patch and angle, which is that of a pair or of a channel; head is 0 if all heads share
  /// the table. Throws Error out of range.
  std::complex<T> factor(std::size_t patch, std::size_t angle, std::size_t head = 0) const;
  /// All factors as complex numbers, in the shape of the angles.
  Tensor<std::complex<T>> to_complex() const;

  BasicRopeFactors<T> factors() const noexcept;                        // a view, valid while the table lives
  operator BasicRopeFactors<T>() const noexcept { return factors(); }  // factors()

 private:
  std::size_t num_heads_ = 1;
  std::size_t num_patches_ = 0;
  std::size_t num_angles_ = 0;
  RopePairing pairing_ = RopePairing::neighbors;
  RopeAngles angles_ = RopeAngles::per_pair;
  Tensor<T> cos_;
  Tensor<T> sin_;
};

/// Order of axes and pairs in the columns of an axial table.
struct AxialRopeOptions {
  AxisOrder axis_order = AxisOrder::x_then_y;    // axis of the first half of the pairs
  RopePairing pairing = RopePairing::neighbors;  // channels of a pair
};

/// (N, 2F) factors of an axial encoding. T is double or float.
template <typename T>
VIT_API RopeTable<T> build_axial_table(const GridCoords& coords, const RopeFrequencies& frequencies,
                                       AxialRopeOptions options = {}) {
  return RopeTable<T>(axial_angles(coords, frequencies, options.axis_order), options.pairing);
}

/// (L, F) factors of a one-dimensional encoding.
template <typename T>
VIT_API RopeTable<T> build_line_table(std::span<const double> positions, const RopeFrequencies& frequencies,
                                      RopePairing pairing = RopePairing::neighbors) {
  return RopeTable<T>(angles_1d(positions, frequencies), pairing);
}

/// (H, N, d / 2) factors of one layer with learned frequencies.
template <typename T>
VIT_API RopeTable<T> build_mixed_table(const GridCoords& coords, const MixedFrequencies& frequencies,
                                       std::size_t layer, RopePairing pairing = RopePairing::neighbors,
                                       AxisOrder order = AxisOrder::x_then_y) {
  return RopeTable<T>(mixed_angles(coords, frequencies, layer, order), pairing);
}

/// Rotates x in place: queries or keys, (B, L, d) or (B, L, H, d). The first `num_prefix_tokens` of the L
/// tokens are unchanged, the others must be the N patches of the factors. Throws Error naming both shapes if
/// they do not fit, and for rows that overlap. Nothing is done if `factors` is empty.
VIT_API void rotate(TensorView<float> x, const BasicRopeFactors<float>& factors,
                    std::size_t num_prefix_tokens = 0);
/// Rotates double queries or keys in place, as above.
VIT_API void rotate(TensorView<double> x, const BasicRopeFactors<double>& factors,
                    std::size_t num_prefix_tokens = 0);

}  // namespace vit::position
