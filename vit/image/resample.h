// Resizes that reproduce the bytes of Pillow and of torchvision. Weights: resample_axis.h, inner loops:
// kernels/resample.h, kept memory in resize_memory.h. Letters: H, W = height and width, C =
// channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"

namespace vit::internal {

struct ResizeMemory;

/// Which implementation of the inner loops runs; both give the same bytes.
enum class ResampleLoops { vectorized, reference };

struct ResampleOptions {
  Resampler resampler = Resampler::pillow;
  ResizeFilter filter = ResizeFilter::bicubic;
  PillowRelease pillow = PillowRelease::from_13_0;
  int threads = 1;  // 0 = all
  ResampleLoops loops = ResampleLoops::vectorized;
};

/// A part of the resized image; only the pixels it needs are computed.
struct ResizeWindow {
  std::size_t top = 0;
  std::size_t left = 0;
  std::size_t height = 0;
  std::size_t width = 0;
};

/// (H, W, C) bytes; channels are resized alike, in any order.
struct PixelRows {
  const std::uint8_t* data = nullptr;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 3;
  std::size_t row_stride = 0;  // bytes

  const std::uint8_t* at(std::size_t y, std::size_t x) const { return data + y * row_stride + x * channels; }
};

/// `in` resized to `target`; the pixels inside `window` are written to `out` (window height, window width, C)
/// without gaps. Resampler pillow or torchvision_uint8. Throws Error for an empty image or target, a window
/// outside the target, a filter that the resampler does not have, targets above 2^31 pixels, and intermediate
/// images above 1 GiB.
void resize(const PixelRows& in, ImageSize target, const ResizeWindow& window, const ResampleOptions& options,
            ResizeMemory& memory, std::uint8_t* out);

/// torch's antialias kernel on float data: every channel of `in` (H, W, 3) times `factor`, resized to
/// `target`, of which the pixels inside `window` are written to the planes of `out` (3, window height, window
/// width) in the order of the channels. Filters nearest, bilinear and bicubic; sums in float32, rows first.
/// Throws Error for an empty image or target, a window outside the target, another filter, and intermediate
/// images above 1 GiB.
void resize_to_float(const PixelRows& in, float factor, ImageSize target, const ResizeWindow& window,
                     ResizeFilter filter, int threads, ResizeMemory& memory, TensorView<float> out);

/// torch's antialias kernel on planes of floats: `in` (K, H, W) resized to `target`, of which the pixels
/// inside `window` are written to `out` (K, window height, window width). As resize_to_float() otherwise; K
/// is 1 or more.
void resize_planes(TensorView<const float> in, ImageSize target, const ResizeWindow& window,
                   ResizeFilter filter, int threads, ResizeMemory& memory, TensorView<float> out);

/// `in`, of three channels, as `target` to `out` (height, width, 3): INTER_CUBIC if one of its edges grows
/// (rounded from double; OpenCV's fixed point differs by 1 here and there), else INTER_AREA.
void resize_opencv(const PixelRows& in, ImageSize target, std::uint8_t* out);

}  // namespace vit::internal
