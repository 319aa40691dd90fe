// Rotary factors cos + i sin per patch and channel pair, and the rotation itself in its plain form. The
// optimised rotation of a model is left to the kernels, which read the same RopeFactors.
// Letters: B = images, L = tokens, N = patches, H = heads, d = channels of a head; d / 2 channel pairs.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/position/frequencies.h"
#include "vit/position/grid.h"

namespace vit::position {

/// A view of rotary factors; owned by a RopeTable or PositionContext. Angle a of pair j rotates channels (p,
/// q) to (x_p cos a - x_q sin a, x_q cos a + x_p sin a):
///   neighbours: | x0 x1 | x2 x3 |   p = 2j, q = 2j + 1
///   halves:     | x0 x1 ' x2 x3 |   p = j,  q = j + d / 2
/// Patch n, pair j of head h stands at h * head_stride + n * pairs + j.
template <typename T>
struct BasicRopeFactors {
  const T* cos = nullptr;  // (N, d / 2), or (H, N, d / 2); null where nothing is rotated
  const T* sin = nullptr;
  std::size_t num_patches = 0;  // N
  std::size_t pairs = 0;        // d / 2
  std::size_t head_stride = 0;  // 0 where all heads share one table, else N * d / 2
  RopePairing pairing = RopePairing::neighbours;
  std::size_t num_heads = 1;  // heads with a table of their own; 1 where all share one
};
/// Factors as the kernels take them.
using RopeFactors = BasicRopeFactors<float>;

// ------------------------------------------------------------------------------------------------- angles

/// (L, F): angle = position * frequency, one-dimensional.
VIT_API Tensor<double> angles_1d(std::span<const double> positions, const RopeFrequencies& frequencies);

/// (N, 2F): the angles of one axis, then those of the other, both with the same frequencies of F = d / 4
/// frequencies.
VIT_API Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& frequencies,
                                    AxisOrder order);
/// The same with frequencies of each axis, F of either. Throws Error if their numbers differ.
VIT_API Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& x,
                                    const RopeFrequencies& y, AxisOrder order);

/// (H, N, d / 2): t_x * x(layer, head) + t_y * y(layer, head), both axes in every angle; with y_then_x the
/// first frequencies belong to t_y.
VIT_API Tensor<double> mixed_angles(const GridCoords& coords, const MixedFrequencies& frequencies,
                                    std::size_t layer, AxisOrder order = AxisOrder::x_then_y);

// -------------------------------------------------------------------------------------------------- table

/// Owns the complex factors of a grid: cosines and sines of angles in double, rounded once to T (double or
/// float). Immutable; safe to share between threads.
template <typename T>
class VIT_API RopeTable {
 public:
  /// `angles` is (N, d / 2), shared by all heads, or (H, N, d / 2). Throws Error on another rank or an empty
  /// side.
  RopeTable(TensorView<const double> angles, RopePairing pairing);

  std::size_t num_heads() const noexcept { return num_heads_; }  // 1 where all heads share one table
  std::size_t num_patches() const noexcept { return num_patches_; }
  std::size_t num_pairs() const noexcept { return num_pairs_; }
  RopePairing pairing() const noexcept { return pairing_; }

  TensorView<const T> cos() const noexcept { return cos_.view(); }  // shape of the angles
  TensorView<const T> sin() const noexcept { return sin_.view(); }
  /// The factor of one patch and pair; head is 0 where all heads share the table. Throws Error out of range.
  std::complex<T> factor(std::size_t patch, std::size_t pair, std::size_t head = 0) const;
  /// All factors as complex numbers, in the shape of the angles.
  Tensor<std::complex<T>> to_complex() const;

  BasicRopeFactors<T> factors() const noexcept;
  operator BasicRopeFactors<T>() const noexcept { return factors(); }

 private:
  std::size_t num_heads_ = 1;
  std::size_t num_patches_ = 0;
  std::size_t num_pairs_ = 0;
  RopePairing pairing_ = RopePairing::neighbours;
  Tensor<T> cos_;
  Tensor<T> sin_;
};

/// Order of axes and pairs in the columns of an axial table.
struct AxialRopeOptions {
  AxisOrder axis_order = AxisOrder::x_then_y;
  RopePairing pairing = RopePairing::neighbours;
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
                                      RopePairing pairing = RopePairing::neighbours) {
  return RopeTable<T>(angles_1d(positions, frequencies), pairing);
}

/// (H, N, d / 2) factors of one layer with learned frequencies.
template <typename T>
VIT_API RopeTable<T> build_mixed_table(const GridCoords& coords, const MixedFrequencies& frequencies,
                                       std::size_t layer, RopePairing pairing = RopePairing::neighbours,
                                       AxisOrder order = AxisOrder::x_then_y) {
  return RopeTable<T>(mixed_angles(coords, frequencies, layer, order), pairing);
}

// ----------------------------------------------------------------------------------------------- rotation

/// Rotates x in place: queries or keys, (B, L, d) or (B, L, H, d). The first `num_prefix_tokens` of the L
/// tokens stay as they are; the other L - num_prefix_tokens must be the N patches of the factors. Throws
/// Error naming both shapes where they do not fit. Nothing is done where `factors` is empty.
VIT_API void rotate(TensorView<float> x, const BasicRopeFactors<float>& factors,
                    std::size_t num_prefix_tokens = 0);
VIT_API void rotate(TensorView<double> x, const BasicRopeFactors<double>& factors,
                    std::size_t num_prefix_tokens = 0);

}  // namespace vit::position
