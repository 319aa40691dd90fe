// A picture in memory: 8-bit RGB, rows from the top, no type of any other library.
// Letters: H = height, W = width.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vit/base/checked.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

struct ImageSize {
  std::size_t height = 0;
  std::size_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Pixels owned elsewhere, (H, W, 3) bytes in the order R, G, B. Copying it copies no pixels.
class ImageView {
 public:
  ImageView() = default;
  /// Rows lie directly behind each other.
  ImageView(const std::uint8_t* rgb, std::size_t height, std::size_t width)
      : ImageView(rgb, height, width, checked_mul(width, 3, "ImageView")) {}
  /// `row_stride` bytes from the start of one row to the start of the next, at least 3 W.
  ImageView(const std::uint8_t* rgb, std::size_t height, std::size_t width, std::size_t row_stride)
      : data_(rgb), height_(height), width_(width), row_stride_(row_stride) {
    VIT_CHECK(rgb != nullptr || height * width == 0, "ImageView", "no pixels for a picture of ", width, " x ",
              height);
    VIT_CHECK(row_stride >= checked_mul(width, 3, "ImageView"), "ImageView", "row stride of ", row_stride,
              " bytes is below 3 bytes x ", width, " pixels");
  }

  const std::uint8_t* data() const noexcept { return data_; }
  const std::uint8_t* row(std::size_t y) const noexcept { return data_ + y * row_stride_; }
  std::size_t height() const noexcept { return height_; }
  std::size_t width() const noexcept { return width_; }
  std::size_t row_stride() const noexcept { return row_stride_; }
  ImageSize size() const noexcept { return {height_, width_}; }
  bool empty() const noexcept { return height_ == 0 || width_ == 0; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t height_ = 0;
  std::size_t width_ = 0;
  std::size_t row_stride_ = 0;
};

/// Owns (H, W, 3) bytes in the order R, G, B, without gaps; black at the start. Moves, does not copy.
class Image {
 public:
  Image() = default;
  Image(std::size_t height, std::size_t width) : pixels_(Shape{height, width, 3}) {}

  std::uint8_t* data() noexcept { return pixels_.data(); }
  const std::uint8_t* data() const noexcept { return pixels_.data(); }
  std::uint8_t* row(std::size_t y) noexcept { return data() + y * row_stride(); }
  const std::uint8_t* row(std::size_t y) const noexcept { return data() + y * row_stride(); }
  std::size_t height() const noexcept { return pixels_.shape().rank() == 0 ? 0 : pixels_.dim(0); }
  std::size_t width() const noexcept { return pixels_.shape().rank() == 0 ? 0 : pixels_.dim(1); }
  std::size_t row_stride() const noexcept { return 3 * width(); }
  ImageSize size() const noexcept { return {height(), width()}; }
  bool empty() const noexcept { return pixels_.empty(); }

  ImageView view() const { return {data(), height(), width()}; }
  operator ImageView() const { return view(); }
  /// The same bytes as a tensor (H, W, 3).
  TensorView<const std::uint8_t> tensor() const noexcept { return pixels_.view(); }

 private:
  Tensor<std::uint8_t> pixels_;
};

}  // namespace vit
