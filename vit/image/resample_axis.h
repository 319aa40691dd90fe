// Weights of one axis of an antialiased resize, as Pillow and torchvision compute them. Applying them is
// kernels/resample.h (8 bit) and resample.cpp (float).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/config.h"
#include "vit/image/resample.h"
#include "vit/kernels/resample.h"

namespace vit {

/// Throws Error for an empty picture or target, a window outside the target, and edges or targets that are
/// absurdly large.
void check_resize(ImageSize in, ImageSize target, const ResizeWindow& window);

/// One axis of a resize, `in` to `out` pixels, of which outputs [begin, end) are wanted.
struct AxisSpan {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Fixed-point weights, with their storage.
class FixedAxis {
 public:
  /// Pillow: w = round-half-away(weight * 2^22), weights in double.
  /// torchvision: int16 weights with the largest precision p < 22 that holds the axis' largest weight.
  /// Throws Error for filters that the resampler does not have.
  FixedAxis(const AxisSpan& span, ResizeFilter filter, Resampler resampler);

  kernels::ResampleAxis view() const noexcept;
  /// Input pixels [first_input, end_input) that the wanted outputs read.
  std::size_t first_input() const noexcept { return first_input_; }
  std::size_t end_input() const noexcept { return end_input_; }
  /// Counts `first` from another origin.
  void shift_origin(std::size_t origin);

 private:
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> count_;
  std::vector<std::size_t> offset_;
  std::vector<std::int32_t> weights_;
  std::vector<std::int32_t> low_;
  std::vector<std::int32_t> high_;
  int shift_ = 22;
  std::size_t first_input_ = 0;
  std::size_t end_input_ = 0;
};

/// Float weights of torch's antialias kernel on float data: scale, centre and weights in float32.
struct FloatAxis {
  FloatAxis(const AxisSpan& span, ResizeFilter filter);

  std::vector<std::size_t> first;
  std::vector<std::size_t> count;
  std::vector<std::size_t> offset;
  std::vector<float> weights;
};

/// Input pixel of every wanted output for filter nearest: Pillow adds the scale up in double, torchvision
/// (nearest-exact) multiplies in float32.
std::vector<std::size_t> nearest_inputs(const AxisSpan& span, Resampler resampler);

}  // namespace vit
