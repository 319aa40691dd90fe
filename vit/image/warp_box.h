// Boxes of an image as images of one size, by the affine map of ViTPose's image processor. Source:
// transformers, models/vitpose/image_processing_vitpose.py, and scipy's affine_transform of order 1.
#pragma once

#include <cstdint>

#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/image/resample.h"

namespace vit::internal {

/// Whether a box, which is neither empty nor infinite, has no pixel of the image.
bool is_outside(const Box& box, ImageSize image) noexcept;

/// What a box is widened to: its center, and width and height in pixels; float32, as the processor rounds.
struct WidenedBox {
  float center_x = 0;
  float center_y = 0;
  float width = 0;  // of the unit: pixels / unit
  float height = 0;
};

/// The box in the aspect ratio of `target`, a quarter larger. Throws Error (argument) for one that is empty
/// or not finite.
WidenedBox widened(const Box& box, ImageSize target, double unit);

/// Where the pixels of the result lie in the image: column x at left + x * x_step.
struct BoxMap {
  double left = 0, top = 0, x_step = 1, y_step = 1;
};
BoxMap box_map(const WidenedBox& box, ImageSize target);

/// `in` (H, W, C) -> `out` (target, C) bytes: the mean of four neighbors, rounded half up; points outside of
/// the centers of the border's pixels are 0.
void warp_box(const PixelRows& in, const BoxMap& map, ImageSize target, std::uint8_t* out);

}  // namespace vit::internal
