// How fast each channel pair rotates: angle per unit of coordinate. Multiplying with coordinates is left to
// rope_table.h.
// Letters: d = channels of a head, H = heads, F = frequencies: d / 4 per axis in 2D, d / 2 in 1D.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit::position {

/// Frequencies per axis of an axial encoding: d / 4. Throws Error if 4 does not divide d.
VIT_API std::size_t num_axial_frequencies(std::size_t head_dim);
/// Frequencies of a one-dimensional encoding: d / 2. Throws Error if 2 does not divide d.
VIT_API std::size_t num_frequencies_1d(std::size_t head_dim);

/// Bounds of the periods of RopeFrequencies::from_period_range.
struct PeriodRange {
  double shortest = 0.0;
  double longest = 0.0;
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
  /// second parametrisation; a single frequency takes the shortest period).
  static RopeFrequencies from_period_range(std::size_t num_frequencies, PeriodRange periods);
  /// 1 / period of periods stored in a file. Throws Error if one is not positive and finite.
  static RopeFrequencies from_periods(std::span<const float> periods);
  /// pi * linspace(1, max_frequency / 2, F), for coordinates in [-1, 1] (pixel bands of Perceiver and RvT).
  static RopeFrequencies pixel_bands(std::size_t num_frequencies, double max_frequency);

  /// The same frequencies times a factor: 2 pi where they count turns (DINOv3).
  RopeFrequencies scaled(double factor) const;

  std::size_t size() const noexcept { return frequencies_.size(); }
  double operator[](std::size_t k) const noexcept { return frequencies_[k]; }
  std::span<const double> values() const noexcept { return frequencies_; }

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
  explicit MixedFrequencies(TensorView<const double> frequencies);

  std::size_t depth() const noexcept { return depth_; }
  std::size_t num_heads() const noexcept { return num_heads_; }
  std::size_t num_pairs() const noexcept { return num_pairs_; }
  /// (d / 2) frequencies of a layer and head; layer < depth(), head < num_heads().
  std::span<const double> x(std::size_t layer, std::size_t head) const { return axis(0, layer, head); }
  std::span<const double> y(std::size_t layer, std::size_t head) const { return axis(1, layer, head); }

 private:
  std::span<const double> axis(std::size_t axis, std::size_t layer, std::size_t head) const;

  std::size_t depth_ = 0;
  std::size_t num_heads_ = 0;
  std::size_t num_pairs_ = 0;
  std::vector<double> values_;  // (2, depth, H, d / 2)
};

}  // namespace vit::position
