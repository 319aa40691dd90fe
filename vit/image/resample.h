// Resizes that reproduce the bytes of Pillow and of torchvision. Weights are resample_axis.h, inner loops
// kernels/resample.h. Letters: H, W = height and width, C = channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/image/image.h"

namespace vit {

/// Which implementation of the inner loops runs; both give the same bytes.
enum class ResampleLoops { vectorised, reference };

struct ResampleOptions {
  Resampler resampler = Resampler::pillow;
  ResizeFilter filter = ResizeFilter::bicubic;
  PillowRelease pillow = PillowRelease::from_13_0;
  int threads = 1;  // 0 = all
  ResampleLoops loops = ResampleLoops::vectorised;
};

/// A part of the resized picture; only what it needs is computed.
struct ResizeWindow {
  std::size_t top = 0;
  std::size_t left = 0;
  std::size_t height = 0;
  std::size_t width = 0;
};

/// `image` resized to `target`, and of that the pixels inside `window`. Resampler pillow or
/// torchvision_uint8. Throws Error for an empty picture or target, a window outside the target, a filter that
/// the resampler does not have, targets above 2^31 pixels, and intermediate pictures above 1 GiB.
Image resize(ImageView image, ImageSize target, const ResizeWindow& window, const ResampleOptions& options);
/// The whole resized picture.
Image resize(ImageView image, ImageSize target, const ResampleOptions& options);

/// The same for any number of channels: in (H, W, C) and out (window height, window width, C), both
/// contiguous.
void resize_pixels(TensorView<const std::uint8_t> in, ImageSize target, const ResizeWindow& window,
                   const ResampleOptions& options, TensorView<std::uint8_t> out);

/// torch's antialias kernel on float data: every channel of `image` times `factor`, resized to `target`, of
/// which the pixels inside `window` are written to the planes of `out` (3, window height, window width).
/// Filters nearest, bilinear and bicubic; sums in float32, rows first. Throws Error as resize() does.
void resize_to_float(ImageView image, float factor, ImageSize target, const ResizeWindow& window,
                     ResizeFilter filter, int threads, TensorView<float> out);

}  // namespace vit
