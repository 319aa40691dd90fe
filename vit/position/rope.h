// 2D rotary position encodings, free of any model: coordinates of patches, frequencies of channel pairs, the
// factors cos + i sin of both, and the rotation in its plain form. The optimised rotation of a model is left
// to the kernels, which read the same RopeFactors. Everything is computed in double and rounded once.
// Letters: B = images, L = tokens, N = patches of a grid, row-major, W = its columns, H = heads, d = channels
// of a head: d / 2 channel pairs, F = frequencies: d / 4 per axis in 2D, d / 2 in 1D.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"

namespace vit::position {

// ----------------------------------------------------------------------------------------------- coordinates

/// Number of patches of a grid. Throws Error if a side is zero or the product overflows.
VIT_API std::size_t num_patches(GridSize grid);

/// "3 x 5" (rows x columns), for messages.
VIT_API std::string to_string(GridSize grid);

/// The length G that centered coordinates divide an axis by.
enum class CenteredBy {
  each_axis,     // x by columns, y by rows: every grid fills [-1, 1] x [-1, 1] (all published DINOv3 models)
  shorter_side,  // both by min(rows, columns)
  longer_side,   // both by max(rows, columns)
};

/// Coordinate of patch i of G along one axis, by rule:
///   index                i + offset                 rope-vit, SAM 2; with offset 1 Meta's Perception Encoder
///   scaled_to_reference  (i + offset) / G * G_ref   EVA-02, timm's Perception Encoder
///   centered             2 (i + 0.5 + offset) / G - 1   DINOv3, without an offset
struct CoordinateOptions {
  CoordinateRule rule = CoordinateRule::index;     // one of the above
  double offset = 0.0;                             // added to the index of a patch
  GridSize reference{};                            // G_ref of scaled_to_reference, per axis
  CenteredBy centered_by = CenteredBy::each_axis;  // of centered
};

/// Two coordinates per patch, in double; patch t lies in column t mod W and row floor(t / W).
struct GridCoords {
  std::vector<double> t_x;  // (N), grows to the right
  std::vector<double> t_y;  // (N), grows downwards

  std::size_t size() const noexcept { return t_x.size(); }  // N: patches of the grid
};

/// Coordinates of all patches of a grid. Throws Error if a side of the grid is zero, a side of the
/// reference grid is zero and the rule needs it, or the offset is not finite.
VIT_API GridCoords grid_coords(GridSize grid, const CoordinateOptions& options = {});

/// Coordinates i + offset of a sequence of `length` tokens, for the one-dimensional encodings.
VIT_API std::vector<double> coords_1d(std::size_t length, double offset = 0.0);

// ----------------------------------------------------------------------------------------------- frequencies

/// Frequencies per axis of an axial encoding: d / 4. Throws Error if 4 does not divide d.
VIT_API std::size_t num_axial_frequencies(std::size_t head_dim);
/// Frequencies of a one-dimensional encoding: d / 2. Throws Error if 2 does not divide d.
VIT_API std::size_t num_frequencies_1d(std::size_t head_dim);

/// Bounds of the periods of RopeFrequencies::from_period_range.
struct PeriodRange {
  double shortest = 0.0;  // units of coordinate per radian; > 0
  double longest = 0.0;   // the same, no less than shortest
};

/// F frequencies in radians per unit of coordinate. Immutable.
class VIT_API RopeFrequencies {
 public:
  /// Takes the frequencies as they are. Throws Error if there is none or one is not finite.
  explicit RopeFrequencies(std::vector<double> frequencies);

  /// theta^(-k / F): theta^(-4k/d) per axis in 2D, theta^(-2k/d) in 1D (Su et al. 2021; EVA-02 10000,
  /// rope-vit 100).
  static RopeFrequencies from_theta(std::size_t num_frequencies, double theta);
  /// exp(-pi k / F), that is exp(-pi 2k/d) in 1D: the frequencies of the half-split one-dimensional variant.
  static RopeFrequencies exp_pi(std::size_t num_frequencies);
  /// 1 / period, the F periods spaced geometrically from shortest to longest, both ends included (DINOv3's
  /// second parametrization; a single frequency takes the shortest period).
  static RopeFrequencies from_period_range(std::size_t num_frequencies, PeriodRange periods);
  /// 1 / period of periods stored in a file. Throws Error if one is not positive and finite.
  static RopeFrequencies from_periods(std::span<const float> periods);
  /// pi * linspace(1, max_frequency / 2, F), for coordinates in [-1, 1] (pixel bands of Perceiver and RvT).
  static RopeFrequencies pixel_bands(std::size_t num_frequencies, double max_frequency);

  /// These frequencies times a factor: 2 pi where they count turns (DINOv3).
  RopeFrequencies scaled(double factor) const;

  std::size_t size() const noexcept { return frequencies_.size(); }            // F: how many there are
  double operator[](std::size_t k) const noexcept { return frequencies_[k]; }  // k < F
  std::span<const double> values() const noexcept { return frequencies_; }     // (F)

 private:
  std::vector<double> frequencies_;
};

/// Learned frequencies of both axes for every layer, head and channel pair; an angle is t_x * x + t_y * y
/// (Heo et al. 2024, "RoPE-Mixed"). Owns its numbers. Immutable.
class VIT_API MixedFrequencies {
 public:
  /// `frequencies` is (2, depth, H, d / 2), x first. Throws Error on another rank, an empty side or a value
  /// that is not finite.
  explicit MixedFrequencies(TensorView<const float> frequencies);
  /// As above, from double.
  explicit MixedFrequencies(TensorView<const double> frequencies);

  std::size_t depth() const noexcept { return depth_; }          // layers
  std::size_t num_heads() const noexcept { return num_heads_; }  // H: heads
  std::size_t num_pairs() const noexcept { return num_pairs_; }  // d / 2
  /// (d / 2) frequencies of t_x in a layer and head; layer < depth(), head < num_heads().
  std::span<const double> x(std::size_t layer, std::size_t head) const { return axis(0, layer, head); }
  /// (d / 2) frequencies of t_y.
  std::span<const double> y(std::size_t layer, std::size_t head) const { return axis(1, layer, head); }

 private:
  std::span<const double> axis(std::size_t axis, std::size_t layer, std::size_t head) const;

  std::size_t depth_ = 0;
  std::size_t num_heads_ = 0;
  std::size_t num_pairs_ = 0;
  std::vector<double> values_;  // (2, depth, H, d / 2)
};

// --------------------------------------------------------------------------------------------------- factors

/// A view of rotary factors; owned by a RopeTable or PositionContext. Angle a of pair j rotates channels (p,
/// q) to (x_p cos a - x_q sin a, x_q cos a + x_p sin a):
///   neighbors: | x0 x1 | x2 x3 |   p = 2j, q = 2j + 1
///   halves:     | x0 x1 ' x2 x3 |   p = j,  q = j + d / 2
///   neighbors_apart: as neighbors, but channel p takes angle p and channel q angle q
/// Patch n, pair j of head h stands at h * head_stride + n * pairs + j.
template <typename T>
struct BasicRopeFactors {
  const T* cos = nullptr;       // (N, d / 2), or (H, N, d / 2); null where nothing is rotated
  const T* sin = nullptr;       // as cos
  std::size_t num_patches = 0;  // N: patches of the grid
  std::size_t pairs = 0;        // d / 2
  std::size_t head_stride = 0;  // 0 where all heads share one table, else N * d / 2
  RopePairing pairing = RopePairing::neighbors;  // channels of a pair
  std::size_t num_heads = 1;                     // heads with a table of their own; 1 where all share one

  /// Angles of a patch: d / 2, or d where the channels of a pair turn apart.
  std::size_t num_angles() const noexcept {
    return pairing == RopePairing::neighbors_apart ? 2 * pairs : pairs;
  }
};
/// Factors as the kernels take them.
using RopeFactors = BasicRopeFactors<float>;

/// (L, F): angle = position * frequency, one-dimensional.
VIT_API Tensor<double> angles_1d(std::span<const double> positions, const RopeFrequencies& frequencies);

/// (N, 2F): the angles of one axis, then those of the other, both with the same frequencies of F = d / 4
/// frequencies.
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
/// floor(floor(d / 3) / 2) channels for each of time, row and column, channel i of an axis turns by
/// coordinate * theta^(-2 (i mod (e / 2)) / e); the other d - 3 e channels stay.
VIT_API Tensor<double> volume_angles(std::size_t num_frames, GridSize grid, std::size_t head_dim,
                                     double theta);

/// Owns the complex factors of a grid: cosines and sines of angles in double, rounded once to T (double or
/// float). Immutable; safe to share between threads.
///   const GridCoords coords = grid_coords({.rows = 14, .columns = 20});
///   const RopeFrequencies frequencies = RopeFrequencies::from_theta(num_axial_frequencies(64), 100.0);
///   const RopeTable<float> table = build_axial_table<float>(coords, frequencies);
///   rotate(queries, table, 1);  // (B, 1 + 280, H, 64): the class token stays
template <typename T>
class VIT_API RopeTable {
 public:
  /// `angles` is (N, d / 2), shared by all heads, or (H, N, d / 2); d where the channels of a pair turn
  /// apart. Throws Error on another rank or an empty side.
  RopeTable(TensorView<const double> angles, RopePairing pairing);

  std::size_t num_heads() const noexcept { return num_heads_; }      // 1 where all heads share one table
  std::size_t num_patches() const noexcept { return num_patches_; }  // N: patches of the grid
  std::size_t num_pairs() const noexcept { return num_pairs_; }      // d / 2
  RopePairing pairing() const noexcept { return pairing_; }          // channels of a pair

  TensorView<const T> cos() const noexcept { return cos_.view(); }  // shape of the angles
  TensorView<const T> sin() const noexcept { return sin_.view(); }  // as cos()
  /// The factor of one patch and pair; head is 0 where all heads share the table. Throws Error out of range.
  std::complex<T> factor(std::size_t patch, std::size_t pair, std::size_t head = 0) const;
  /// All factors as complex numbers, in the shape of the angles.
  Tensor<std::complex<T>> to_complex() const;

  BasicRopeFactors<T> factors() const noexcept;                        // a view, valid while the table lives
  operator BasicRopeFactors<T>() const noexcept { return factors(); }  // factors()

 private:
  std::size_t num_heads_ = 1;
  std::size_t num_patches_ = 0;
  std::size_t num_pairs_ = 0;
  RopePairing pairing_ = RopePairing::neighbors;
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
/// tokens stay as they are; the other L - num_prefix_tokens must be the N patches of the factors. Throws
/// Error naming both shapes where they do not fit. Nothing is done where `factors` is empty.
VIT_API void rotate(TensorView<float> x, const BasicRopeFactors<float>& factors,
                    std::size_t num_prefix_tokens = 0);
/// Rotates double queries or keys in place, as above.
VIT_API void rotate(TensorView<double> x, const BasicRopeFactors<double>& factors,
                    std::size_t num_prefix_tokens = 0);

}  // namespace vit::position

#include "vit/position/rope_scaling.h"  // IWYU pragma: export
