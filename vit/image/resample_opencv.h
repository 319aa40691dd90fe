// OpenCV's resizes of bytes that Depth Anything 3 makes: the mean of an area where an image shrinks, cubic
// where it grows.
#pragma once

#include <cstdint>

#include "vit/image/resample.h"

namespace vit::internal {

/// `in`, of three channels, as `target` to `out` (height, width, 3): INTER_CUBIC where one of its edges grows
/// (rounded from double; OpenCV's fixed point differs by 1 here and there), else INTER_AREA.
void resize_opencv(const PixelRows& in, ImageSize target, std::uint8_t* out);

}  // namespace vit::internal
