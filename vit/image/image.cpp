#include "vit/image/image.h"

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit {

ImageView::ImageView(const std::uint8_t* pixels, std::size_t height, std::size_t width, PixelLayout layout)
    : data_(pixels), height_(height), width_(width), format_(layout.format) {
  VIT_CHECK(bytes_per_pixel(format_) != 0, "ImageView", "unknown pixel format ", static_cast<int>(format_));
  const std::size_t row_bytes = checked_mul(width, bytes_per_pixel(format_), "ImageView");
  row_stride_ = layout.row_stride == 0 ? row_bytes : layout.row_stride;
  VIT_CHECK(pixels != nullptr || height == 0 || width == 0, "ImageView", "no pixels for an image of ", width,
            " x ", height, " (width x height)");
  VIT_CHECK(row_stride_ >= row_bytes, "ImageView", "row stride of ", row_stride_, " bytes is below ",
            bytes_per_pixel(format_), " bytes x ", width, " pixels");
  checked_mul(height, row_stride_, "ImageView");
}

}  // namespace vit
