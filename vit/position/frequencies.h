// Second step of a rotary encoding: frequencies of the angles of a head, by formulas, stored or learned, and
// their common form. Letters: d = channels of a head, F = frequencies: d / 4 per axis in 2D, d / 2 in 1D, H =
// heads, A = angles of a head.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"

namespace vit::position {

/// Frequencies per axis of an axial encoding: d / 4. Throws Error if d is 0 or 4 does not divide it.
VIT_API std::size_t num_axial_frequencies(std::size_t head_dim);
/// Frequencies of a one-dimensional encoding: d / 2. Throws Error if d is 0 or odd.
VIT_API std::size_t num_frequencies_1d(std::size_t head_dim);
/// Frequencies per axis of three in V-JEPA 2: floor(floor(d / 3) / 2). Throws Error if that is zero.
VIT_API std::size_t num_volume_frequencies(std::size_t head_dim);

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
  /// (d / 2) frequencies of t_x in a layer and head. Throws Error if there is no such layer or head, or these
  /// were moved elsewhere.
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

/// Frequencies of one angle along the axes, in radians per unit of coordinate.
struct FrequencyVector {
  double x = 0.0;  // of t_x
  double y = 0.0;  // of t_y
  double t = 0.0;  // of t_t

  bool operator==(const FrequencyVector&) const = default;
};

/// The frequencies of any encoding in one form: for every angle of a head a vector w, of each layer and head
/// if they differ;
///   angle = w_x t_x + w_y t_y + w_t t_t
/// Axial encodings have one component that is not zero in each vector, mixed ones two. Owns its numbers.
/// Immutable.
class VIT_API FrequencyVectors {
 public:
  /// The same A vectors for all layers and heads. Throws Error if there is none or a number is not finite.
  explicit FrequencyVectors(std::vector<FrequencyVector> vectors);
  /// `vectors` is (layers, H, A), row-major. Throws Error if the count differs from the product of the sizes.
  FrequencyVectors(std::size_t num_layers, std::size_t num_heads, std::vector<FrequencyVector> vectors);

  /// 2F vectors: those of one axis, then those of the other. Throws Error if x and y have different lengths.
  static FrequencyVectors axial(const RopeFrequencies& x, const RopeFrequencies& y, AxisOrder order);
  /// (depth, H, d / 2) vectors; with y_then_x the first frequencies belong to t_y.
  static FrequencyVectors mixed(const MixedFrequencies& frequencies, AxisOrder order);
  /// d vectors, one per channel of a head (V-JEPA 2): of the first 2F channels for t_t, of the next for t_y,
  /// of the third part for t_x, in each of which channel i has frequency i mod F; the rest is zero. Throws
  /// Error if 6F exceeds d.
  static FrequencyVectors volume(const RopeFrequencies& frequencies, std::size_t head_dim);
  /// d / 2 vectors, one per pair (MiniMax-M3): F for t_t, F for t_y, F for t_x; the rest is zero. Throws
  /// Error if 6F exceeds d.
  static FrequencyVectors volume_pairs(const RopeFrequencies& frequencies, std::size_t head_dim);

  std::size_t num_layers() const noexcept { return num_layers_; }  // 1 where all layers share the vectors
  std::size_t num_heads() const noexcept { return num_heads_; }    // H; 1 where all heads share the vectors
  std::size_t num_angles() const noexcept { return num_angles_; }  // A: of a head
  /// (A) vectors of a layer and head. Throws Error if there is no such layer or head, or these were moved
  /// elsewhere.
  std::span<const FrequencyVector> of(std::size_t layer, std::size_t head) const;

 private:
  void check() const;

  std::size_t num_layers_ = 1;
  std::size_t num_heads_ = 1;
  std::size_t num_angles_ = 0;
  std::vector<FrequencyVector> vectors_;  // (layers, H, A)
};

}  // namespace vit::position
