// Shared by the resizes of whole images and of rows: limits, and the order of passes.
#pragma once

#include <cstddef>

#include "vit/base/check.h"
#include "vit/image/resample.h"

namespace vit::internal {

/// Sizes that are too large are `unsupported`, invalid ones an `argument`.
constexpr Where kResize{"resize", ErrorKind::argument};
constexpr Where kResizeLimit = kResize.with(ErrorKind::unsupported);

/// Throws Error for an empty image or target, a window outside the target, and edges or targets that are
/// excessively large.
void check_resize(ImageSize in, ImageSize target, const ResizeWindow& window);

/// Whether this Pillow release resizes the height before the width.
bool vertical_first(PillowRelease release, ImageSize in, ImageSize out);

/// Throws Error if the image of `size` between two passes would take more than 1 GiB.
void check_intermediate(std::size_t bytes, ImageSize size);

}  // namespace vit::internal
