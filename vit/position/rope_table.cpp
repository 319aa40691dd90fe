#include "vit/position/rope.h"

#include <cmath>
#include <string>

#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/base/written_rows.h"
#include "vit/position/rope_encoding.h"

namespace vit::position {
namespace {

template <typename T>
void check_fits(const TensorView<T>& x, const BasicRopeFactors<T>& factors, std::size_t num_prefix_tokens) {
  check_choice("rotate", "pairing", factors.pairing, RopePairing::halves);
  check_choice("rotate", "angles", factors.angles, RopeAngles::per_channel);
  const Shape& shape = x.shape();
  const bool is_ranked = shape.rank() == 3 || shape.rank() == 4;
  const std::size_t num_heads = shape.rank() == 4 ? shape[2] : 1;
  const bool fits =
      is_ranked && num_prefix_tokens <= shape[1] && shape[1] - num_prefix_tokens == factors.num_patches &&
      shape.last() == 2 * factors.pairs && (factors.num_heads == 1 || factors.num_heads == num_heads);
  const std::size_t count = factors.num_angles();
  const Shape table = factors.num_heads == 1 ? Shape{factors.num_patches, count}
                                             : Shape{factors.num_heads, factors.num_patches, count};
  VIT_CHECK(
      fits, "rotate", "vectors ", shape.to_string(), " do not fit the factors ", table.to_string(), " and ",
      num_prefix_tokens, " prefix tokens: expected (B, ", num_prefix_tokens + factors.num_patches, ", ",
      factors.num_heads == 1 ? std::string("[H,] ") : text(factors.num_heads, ", "), 2 * factors.pairs, ")");
}

/// The row of one token and head; cos and sin are those of its patch and head.
template <typename T>
void rotate_row(T* x, const T* cos, const T* sin, const BasicRopeFactors<T>& factors) {
  const std::size_t step = factors.pairing == RopePairing::halves ? 1 : 2;
  const std::size_t partner = factors.pairing == RopePairing::halves ? factors.pairs : 1;
  const bool per_pair = factors.angles == RopeAngles::per_pair;
  for (std::size_t j = 0; j < factors.pairs; ++j) {
    const std::size_t at_p = j * step, at_q = j * step + partner;
    const std::size_t of_p = per_pair ? j : at_p, of_q = per_pair ? j : at_q;
    const T p = x[at_p], q = x[at_q];
    x[at_p] = p * cos[of_p] - q * sin[of_p];
    x[at_q] = q * cos[of_q] + p * sin[of_q];
  }
}

template <typename T>
void rotate_all(TensorView<T> x, const BasicRopeFactors<T>& factors, std::size_t num_prefix_tokens) {
  if (!internal::rotates(factors, "rotate")) return;
  check_fits(x, factors, num_prefix_tokens);
  VIT_CHECK(!x.empty() || x.num_elements() == 0, "rotate", "no memory of ", x.shape().to_string());
  internal::check_rows_apart(x, "rotate");
  const std::size_t num_images = x.dim(0);
  const std::size_t num_tokens = x.dim(1);
  const std::size_t num_heads = x.rank() == 4 ? x.dim(2) : 1;
  for (std::size_t b = 0; b < num_images; ++b) {
    for (std::size_t patch = 0; patch < factors.num_patches; ++patch) {
      const std::size_t token = b * num_tokens + num_prefix_tokens + patch;
      for (std::size_t h = 0; h < num_heads; ++h) {
        const std::size_t at = h * factors.head_stride + patch * factors.num_angles();
        rotate_row(x.row(token * num_heads + h), factors.cos + at, factors.sin + at, factors);
      }
    }
  }
}

/// Writes the angles (N, A) of one head.
void write_angles(const GridCoords& coords, std::span<const FrequencyVector> vectors, double* out) {
  const bool is_clip = !coords.t_t.empty();
  for (std::size_t patch = 0; patch < coords.size(); ++patch) {
    const double x = coords.t_x[patch], y = coords.t_y[patch];
    for (const FrequencyVector& w : vectors) *out++ = x * w.x + y * w.y;
    if (!is_clip) continue;
    double* const row = out - vectors.size();
    for (std::size_t a = 0; a < vectors.size(); ++a) row[a] += coords.t_t[patch] * vectors[a].t;
  }
}

/// The angles (H, N, A), in a tensor of that many elements.
void write_angles(const GridCoords& coords, const FrequencyVectors& frequencies, std::size_t layer,
                  Tensor<double>& out) {
  VIT_CHECK(coords.t_x.size() == coords.t_y.size(), "rope_angles", coords.t_x.size(), " x coordinates and ",
            coords.t_y.size(), " y coordinates");
  VIT_CHECK(coords.t_t.empty() || coords.t_t.size() == coords.t_x.size(), "rope_angles", coords.t_x.size(),
            " x coordinates and ", coords.t_t.size(), " of time");
  const std::size_t of_head = coords.size() * frequencies.num_angles();
  for (std::size_t head = 0; head < frequencies.num_heads(); ++head)
    write_angles(coords, frequencies.of(layer, head), out.data() + head * of_head);
}

}  // namespace

Tensor<double> angles_1d(std::span<const double> positions, const RopeFrequencies& frequencies) {
  Tensor<double> angles(Shape{positions.size(), frequencies.size()});
  double* out = angles.data();
  for (const double position : positions) {
    for (const double frequency : frequencies.values()) *out++ = position * frequency;
  }
  return angles;
}

Tensor<double> rope_angles(const GridCoords& coords, const FrequencyVectors& frequencies, std::size_t layer) {
  const std::size_t heads = frequencies.num_heads(), count = frequencies.num_angles();
  Tensor<double> angles(heads == 1 ? Shape{coords.size(), count} : Shape{heads, coords.size(), count});
  write_angles(coords, frequencies, layer, angles);
  return angles;
}

Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& frequencies, AxisOrder order) {
  return axial_angles(coords, frequencies, frequencies, order);
}

Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& x, const RopeFrequencies& y,
                            AxisOrder order) {
  return rope_angles(coords, FrequencyVectors::axial(x, y, order));
}

Tensor<double> mixed_angles(const GridCoords& coords, const MixedFrequencies& frequencies, std::size_t layer,
                            AxisOrder order) {
  Tensor<double> angles(Shape{frequencies.num_heads(), coords.size(), frequencies.num_pairs()});
  write_angles(coords, FrequencyVectors::mixed(frequencies, order), layer, angles);
  return angles;
}

Tensor<double> volume_angles(std::size_t num_frames, GridSize grid, std::size_t head_dim, double theta) {
  const RopeFrequencies frequencies = RopeFrequencies::from_theta(num_volume_frequencies(head_dim), theta);
  return rope_angles(clip_coords(num_frames, grid), FrequencyVectors::volume(frequencies, head_dim));
}

template <typename T>
RopeTable<T>::RopeTable(TensorView<const double> angles, RopePairing pairing, RopeAngles per)
    : pairing_(pairing), angles_(per) {
  check_choice("RopeTable", "pairing", pairing, RopePairing::halves);
  check_choice("RopeTable", "angles", per, RopeAngles::per_channel);
  const Shape& shape = angles.shape();
  VIT_CHECK((shape.rank() == 2 || shape.rank() == 3) && shape.num_elements() > 0 && !angles.empty(),
            "RopeTable", "expected angles (N, A) or (H, N, A), found ", angles.describe());
  VIT_CHECK(per == RopeAngles::per_pair || shape.last() % 2 == 0, "RopeTable", "an angle per channel for ",
            shape.last(), " channels, which form no pairs");
  num_heads_ = shape.rank() == 3 ? shape[0] : 1;
  num_patches_ = shape[shape.rank() - 2];
  num_angles_ = shape.last();
  cos_ = Tensor<T>(shape);
  sin_ = Tensor<T>(shape);
  for (std::size_t r = 0; r < angles.num_rows(); ++r) {
    for (std::size_t a = 0; a < num_angles_; ++a) {
      const double angle = angles.row(r)[a];
      VIT_CHECK(std::isfinite(angle), "RopeTable", "angle ", a, " of row ", r, " of ", shape.to_string(),
                " is ", angle, "; are all coordinates finite?");
      cos_.data()[r * num_angles_ + a] = static_cast<T>(std::cos(angle));
      sin_.data()[r * num_angles_ + a] = static_cast<T>(std::sin(angle));
    }
  }
}

template <typename T>
std::size_t RopeTable<T>::num_pairs() const noexcept {
  return angles_ == RopeAngles::per_channel ? num_angles_ / 2 : num_angles_;
}

template <typename T>
std::complex<T> RopeTable<T>::factor(std::size_t patch, std::size_t angle, std::size_t head) const {
  internal::parts_of(cos_.data(), "RopeTable");
  VIT_CHECK(head < num_heads_ && patch < num_patches_ && angle < num_angles_, "RopeTable",
            "no factor for head ", head, ", patch ", patch, ", angle ", angle, " in ",
            cos_.shape().to_string());
  const std::size_t at = (head * num_patches_ + patch) * num_angles_ + angle;
  return {cos_.data()[at], sin_.data()[at]};
}

template <typename T>
Tensor<std::complex<T>> RopeTable<T>::to_complex() const {
  internal::parts_of(cos_.data(), "RopeTable");
  Tensor<std::complex<T>> factors(cos_.shape());
  for (std::size_t i = 0; i < cos_.num_elements(); ++i) factors.data()[i] = {cos_.data()[i], sin_.data()[i]};
  return factors;
}

template <typename T>
BasicRopeFactors<T> RopeTable<T>::factors() const noexcept {
  return {.cos = cos_.data(),
          .sin = sin_.data(),
          .num_patches = num_patches_,
          .pairs = num_pairs(),
          .head_stride = num_heads_ == 1 ? 0 : num_patches_ * num_angles_,
          .pairing = pairing_,
          .num_heads = num_heads_,
          .angles = angles_};
}

template class RopeTable<float>;
template class RopeTable<double>;

void rotate(TensorView<float> x, const BasicRopeFactors<float>& factors, std::size_t num_prefix_tokens) {
  rotate_all(x, factors, num_prefix_tokens);
}

void rotate(TensorView<double> x, const BasicRopeFactors<double>& factors, std::size_t num_prefix_tokens) {
  rotate_all(x, factors, num_prefix_tokens);
}

}  // namespace vit::position
