#include "vit/position/rope.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"

namespace vit::position {
namespace {

template <typename T>
void check_fits(const TensorView<T>& x, const BasicRopeFactors<T>& factors, std::size_t num_prefix_tokens) {
  const Shape& shape = x.shape();
  const bool is_ranked = shape.rank() == 3 || shape.rank() == 4;
  const std::size_t num_heads = shape.rank() == 4 ? shape[2] : 1;
  const bool fits = is_ranked && shape[1] == num_prefix_tokens + factors.num_patches &&
                    shape.last() == 2 * factors.pairs &&
                    (factors.num_heads == 1 || factors.num_heads == num_heads);
  const Shape table = factors.num_heads == 1 ? Shape{factors.num_patches, factors.pairs}
                                             : Shape{factors.num_heads, factors.num_patches, factors.pairs};
  VIT_CHECK(
      fits, "rotate", "vectors ", shape.to_string(), " do not fit the factors ", table.to_string(), " and ",
      num_prefix_tokens, " prefix tokens: expected (B, ", num_prefix_tokens + factors.num_patches, ", ",
      factors.num_heads == 1 ? std::string("[H,] ") : text(factors.num_heads, ", "), 2 * factors.pairs, ")");
}

template <typename T>
void rotate_row(T* x, const T* cos, const T* sin, std::size_t pairs, RopePairing pairing) {
  const std::size_t step = pairing == RopePairing::halves ? 1 : 2;
  const std::size_t partner = pairing == RopePairing::halves ? pairs : 1;
  const bool apart = pairing == RopePairing::neighbors_apart;
  for (std::size_t j = 0; j < pairs; ++j) {
    T& p = x[j * step];
    T& q = x[j * step + partner];
    const std::size_t of_p = apart ? 2 * j : j, of_q = apart ? 2 * j + 1 : j;
    const T turned = p * cos[of_p] - q * sin[of_p];
    q = q * cos[of_q] + p * sin[of_q];
    p = turned;
  }
}

template <typename T>
void rotate_all(TensorView<T> x, const BasicRopeFactors<T>& factors, std::size_t num_prefix_tokens) {
  if (factors.cos == nullptr) return;
  check_fits(x, factors, num_prefix_tokens);
  const std::size_t num_images = x.dim(0);
  const std::size_t num_tokens = x.dim(1);
  const std::size_t num_heads = x.rank() == 4 ? x.dim(2) : 1;
  for (std::size_t b = 0; b < num_images; ++b) {
    for (std::size_t patch = 0; patch < factors.num_patches; ++patch) {
      const std::size_t token = b * num_tokens + num_prefix_tokens + patch;
      for (std::size_t h = 0; h < num_heads; ++h) {
        const std::size_t at = h * factors.head_stride + patch * factors.num_angles();
        rotate_row(x.row(token * num_heads + h), factors.cos + at, factors.sin + at, factors.pairs,
                   factors.pairing);
      }
    }
  }
}

struct OrderedAxes {
  std::span<const double> first, second;
};

/// The coordinates of the axis whose angles come first, and of the other.
OrderedAxes ordered_axes(const GridCoords& coords, AxisOrder order, const char* where) {
  VIT_CHECK(coords.t_x.size() == coords.t_y.size(), where, coords.t_x.size(), " x coordinates and ",
            coords.t_y.size(), " y coordinates");
  if (order == AxisOrder::x_then_y) return {coords.t_x, coords.t_y};
  return {coords.t_y, coords.t_x};
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

Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& frequencies, AxisOrder order) {
  return axial_angles(coords, frequencies, frequencies, order);
}

Tensor<double> axial_angles(const GridCoords& coords, const RopeFrequencies& x, const RopeFrequencies& y,
                            AxisOrder order) {
  VIT_CHECK(x.size() == y.size(), "axial_angles", x.size(), " frequencies of x and ", y.size(), " of y");
  const auto [first, second] = ordered_axes(coords, order, "axial_angles");
  const bool x_first = order == AxisOrder::x_then_y;
  const std::span<const double> first_values = (x_first ? x : y).values();
  const std::span<const double> second_values = (x_first ? y : x).values();
  Tensor<double> angles(Shape{coords.size(), x.size() + y.size()});
  double* out = angles.data();
  for (std::size_t patch = 0; patch < coords.size(); ++patch) {
    for (const double frequency : first_values) *out++ = first[patch] * frequency;
    for (const double frequency : second_values) *out++ = second[patch] * frequency;
  }
  return angles;
}

Tensor<double> mixed_angles(const GridCoords& coords, const MixedFrequencies& frequencies, std::size_t layer,
                            AxisOrder order) {
  const auto [first, second] = ordered_axes(coords, order, "mixed_angles");
  Tensor<double> angles(Shape{frequencies.num_heads(), coords.size(), frequencies.num_pairs()});
  double* out = angles.data();
  for (std::size_t head = 0; head < frequencies.num_heads(); ++head) {
    const std::span<const double> x = frequencies.x(layer, head);
    const std::span<const double> y = frequencies.y(layer, head);
    for (std::size_t patch = 0; patch < coords.size(); ++patch) {
      for (std::size_t j = 0; j < x.size(); ++j) *out++ = first[patch] * x[j] + second[patch] * y[j];
    }
  }
  return angles;
}

Tensor<double> volume_angles(std::size_t num_frames, GridSize grid, std::size_t head_dim, double theta) {
  const std::size_t per_axis = head_dim / 3 / 2 * 2, pairs = per_axis / 2;
  VIT_CHECK(pairs > 0 && num_frames > 0, "volume_angles", "heads of ", head_dim, " channels and ", num_frames,
            " frames");
  const std::size_t in_frame = num_patches(grid);
  Tensor<double> angles(Shape{num_frames * in_frame, head_dim});
  for (std::size_t token = 0; token < angles.dim(0); ++token) {
    const std::size_t patch = token % in_frame;
    const std::size_t at[] = {token / in_frame, patch / grid.columns, patch % grid.columns};
    double* const row = angles.data() + token * head_dim;
    std::fill_n(row, head_dim, 0.0);
    for (std::size_t i = 0; i < 3 * per_axis; ++i) {
      const double exponent =
          -2.0 * static_cast<double>(i % per_axis % pairs) / static_cast<double>(per_axis);
      row[i] = static_cast<double>(at[i / per_axis]) * std::pow(theta, exponent);
    }
  }
  return angles;
}

template <typename T>
RopeTable<T>::RopeTable(TensorView<const double> angles, RopePairing pairing) : pairing_(pairing) {
  const Shape& shape = angles.shape();
  VIT_CHECK((shape.rank() == 2 || shape.rank() == 3) && shape.num_elements() > 0, "RopeTable",
            "expected angles (N, pairs) or (H, N, pairs), found ", shape.to_string());
  num_heads_ = shape.rank() == 3 ? shape[0] : 1;
  num_patches_ = shape[shape.rank() - 2];
  const std::size_t num_angles = shape.last();
  num_pairs_ = pairing == RopePairing::neighbors_apart ? num_angles / 2 : num_angles;
  cos_ = Tensor<T>(shape);
  sin_ = Tensor<T>(shape);
  for (std::size_t r = 0; r < angles.num_rows(); ++r) {
    for (std::size_t j = 0; j < num_angles; ++j) {
      const double angle = angles.row(r)[j];
      cos_.data()[r * num_angles + j] = static_cast<T>(std::cos(angle));
      sin_.data()[r * num_angles + j] = static_cast<T>(std::sin(angle));
    }
  }
}

template <typename T>
std::complex<T> RopeTable<T>::factor(std::size_t patch, std::size_t pair, std::size_t head) const {
  VIT_CHECK(head < num_heads_ && patch < num_patches_ && pair < num_pairs_, "RopeTable",
            "no factor for head ", head, ", patch ", patch, ", pair ", pair, " in ",
            cos_.shape().to_string());
  const std::size_t at = (head * num_patches_ + patch) * num_pairs_ + pair;
  return {cos_.data()[at], sin_.data()[at]};
}

template <typename T>
Tensor<std::complex<T>> RopeTable<T>::to_complex() const {
  Tensor<std::complex<T>> factors(cos_.shape());
  for (std::size_t i = 0; i < cos_.num_elements(); ++i) factors.data()[i] = {cos_.data()[i], sin_.data()[i]};
  return factors;
}

template <typename T>
BasicRopeFactors<T> RopeTable<T>::factors() const noexcept {
  return {.cos = cos_.data(),
          .sin = sin_.data(),
          .num_patches = num_patches_,
          .pairs = num_pairs_,
          .head_stride = num_heads_ == 1 ? 0 : num_patches_ * num_pairs_,
          .pairing = pairing_,
          .num_heads = num_heads_};
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
