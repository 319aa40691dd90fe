// Weights of one axis of an antialiased resize, as Pillow and torchvision compute them. They are applied in
// kernels/resample.h (8 bit) and resample_float.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/kernels/resample.h"

namespace vit::internal {

/// One axis of a resize, `in` to `out` pixels, of which outputs [begin, end) are wanted.
struct AxisSpan {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const AxisSpan&) const = default;
};

/// Fixed-point weights, with their storage.
class FixedAxis {
 public:
  /// Pillow: w = round-half-away(weight * 2^22), weights in double.
  /// torchvision: int16 weights with the largest precision p < 22 that fits the axis' largest weight.
  /// `mirrored`: the axis is stored in reverse: its inputs and the wanted outputs are counted from the
  /// other end. Throws Error for filters that the resampler does not have.
  FixedAxis(const AxisSpan& span, ResizeFilter filter, Resampler resampler, bool mirrored = false);

  /// Inputs are counted from first_input().
  kernels::ResampleAxis view() const noexcept;
  /// The wanted outputs read the input pixels [first_input, first_input + num_inputs).
  std::size_t first_input() const noexcept { return first_input_; }
  std::size_t num_inputs() const noexcept { return num_inputs_; }
  std::size_t bytes() const noexcept;

 private:
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> count_;
  std::vector<std::size_t> offset_;
  std::vector<std::int32_t> weights_;
  std::vector<std::int32_t> low_;
  std::vector<std::int32_t> high_;
  int shift_ = 22;
  std::size_t first_input_ = 0;
  std::size_t num_inputs_ = 0;
};

/// Float weights of torch's antialias kernel on float data: scale, center and weights in float32.
struct FloatAxis {
  /// `blur`: of ResizeFilter::blurred_bilinear, the sigma of the Gaussian in front of it. Throws Error for
  /// filters other than it, near_bilinear, bilinear, bicubic and opencv_cubic.
  FloatAxis(const AxisSpan& span, ResizeFilter filter, float blur = 0.0f);
  std::size_t bytes() const noexcept;

  std::vector<std::size_t> first;
  std::vector<std::size_t> count;
  std::vector<std::size_t> offset;
  std::vector<float> weights;
};

/// Sigmas of the blur in front of a resize.
struct Blur {
  float rows = 0;
  float columns = 0;
};
/// Of ResizeFilter::blurred_bilinear, in float32; of other filters 0. No edge is blurred unless both shrink,
/// and the library takes the sigma of the height along the width, and the other way round.
Blur blur_of(ImageSize in, ImageSize out, ResizeFilter filter);

/// Input pixel of every wanted output for filter nearest: Pillow adds the scale up in double, torchvision
/// (nearest-exact) multiplies in float32.
struct NearestAxis {
  NearestAxis(const AxisSpan& span, Resampler resampler);
  std::size_t bytes() const noexcept { return inputs.capacity() * sizeof(std::size_t); }

  std::vector<std::size_t> inputs;
};

}  // namespace vit::internal
