// An image in memory: 8-bit pixels, rows from the top, without types of other libraries. ImageView points to
// pixels owned elsewhere, in any of five formats; Image owns RGB pixels. Image files become Images
// that equal Pillow's Image.open(file).convert("RGB").
// Letters: H = height, W = width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Larger images are neither read nor created unless requested; Pillow's limit for decompression bombs.
inline constexpr std::size_t kMaxImagePixels = 178'956'970;

/// Size in pixels.
struct ImageSize {
  std::size_t height = 0;  // pixels
  std::size_t width = 0;   // pixels
  bool operator==(const ImageSize&) const = default;
};

/// Order of the bytes of a pixel. `bgr` and `bgra` are OpenCV's; alpha is not premultiplied.
enum class PixelFormat {
  rgb,          // R, G, B
  bgr,          // B, G, R
  rgba,         // R, G, B, alpha
  bgra,         // B, G, R, alpha
  gray,         // one byte
  grey = gray,  // its name up to 0.2
};

/// 3, 4 or 1.
constexpr std::size_t bytes_per_pixel(PixelFormat format) {
  switch (format) {
    case PixelFormat::rgb:
    case PixelFormat::bgr: return 3;
    case PixelFormat::rgba:
    case PixelFormat::bgra: return 4;
    case PixelFormat::gray: return 1;
  }
  return 0;
}

/// Whether the last byte of a pixel is its opacity.
constexpr bool has_alpha(PixelFormat format) {
  return bytes_per_pixel(format) == 4;
}

/// Layout of pixels in memory.
struct PixelLayout {
  PixelFormat format = PixelFormat::rgb;  // order of the bytes of a pixel
  std::size_t row_stride = 0;  // bytes from the start of one row to the next; 0 = rows without gaps
};

/// Treatment of transparency.
enum class Alpha {
  drop,      // ignored, as Pillow's convert("RGB") does
  on_white,  // composited on white, as Hugging Face's do_convert_rgb does with an image in memory
};

/// Pixels owned elsewhere, (H, W, bytes per pixel). Copying a view copies no pixels.
class VIT_API ImageView {
 public:
  ImageView() = default;
  /// Throws Error if `pixels` is null although the image has pixels, if the stride is shorter than a row, or
  /// for a format that is none of PixelFormat.
  ImageView(const std::uint8_t* pixels, std::size_t height, std::size_t width, PixelLayout layout = {});

  const std::uint8_t* data() const noexcept { return data_; }  // first byte of the first row
  const std::uint8_t* row(std::size_t y) const noexcept { return data_ + y * row_stride_; }  // y < height()
  std::size_t height() const noexcept { return height_; }                                    // pixels
  std::size_t width() const noexcept { return width_; }                                      // pixels
  PixelFormat format() const noexcept { return format_; }  // order of the bytes of a pixel
  /// Bytes from the start of one row to the start of the next.
  std::size_t row_stride() const noexcept { return row_stride_; }
  ImageSize size() const noexcept { return {height_, width_}; }        // H x W
  bool empty() const noexcept { return height_ == 0 || width_ == 0; }  // no pixels

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t height_ = 0;
  std::size_t width_ = 0;
  std::size_t row_stride_ = 0;
  PixelFormat format_ = PixelFormat::rgb;
};

/// Owns (H, W, 3) bytes in the order R, G, B, without gaps; black at the start. Moves, does not copy.
class Image {
 public:
  Image() = default;
  /// A black image. Throws Error if the size overflows, std::bad_alloc if memory is short.
  Image(std::size_t height, std::size_t width) : pixels_(Shape{height, width, 3}) {}

  std::uint8_t* data() noexcept { return pixels_.data(); }              // first byte of the first row
  const std::uint8_t* data() const noexcept { return pixels_.data(); }  // first byte of the first row
  std::uint8_t* row(std::size_t y) noexcept { return data() + y * row_stride(); }              // y < height()
  const std::uint8_t* row(std::size_t y) const noexcept { return data() + y * row_stride(); }  // y < height()
  std::size_t height() const noexcept { return pixels_.shape().rank() == 0 ? 0 : pixels_.dim(0); }  // pixels
  std::size_t width() const noexcept { return pixels_.shape().rank() == 0 ? 0 : pixels_.dim(1); }   // pixels
  std::size_t row_stride() const noexcept { return 3 * width(); }  // bytes of a row
  ImageSize size() const noexcept { return {height(), width()}; }  // H x W
  bool empty() const noexcept { return pixels_.empty(); }          // no pixels

  /// The image must outlive the view; a temporary has no view.
  ImageView view() const& { return {data(), height(), width()}; }
  ImageView view() const&& = delete;
  operator ImageView() const& { return view(); }  // view()
  operator ImageView() const&& = delete;

 private:
  Tensor<std::uint8_t> pixels_;
};

/// Copies pixels of any format; gray becomes R = G = B.
VIT_API Image to_rgb(ImageView image, Alpha alpha = Alpha::drop);

// ----------------------------------------------------------------------------------------------------- files

// Each format has its own source file; all decoders check sizes before they allocate, print nothing, and
// throw an Error that names the file and the cause.

/// Treatment of the orientation in EXIF or else XMP (JPEG, PNG, WebP, AVIF). The orientation
/// tag of a TIFF is part of its pixel layout and is always applied, as in Pillow; so is that of a HEIF
/// container, as in pillow-heif.
enum class Orientation {
  ignore,  // pixels as stored
  apply,   // rotated and mirrored upright
};

/// Options for decoding a file.
struct DecodeOptions {
  Orientation orientation = Orientation::ignore;  // treatment of the EXIF orientation
  Alpha alpha = Alpha::drop;                      // treatment of transparency
  std::size_t max_pixels = kMaxImagePixels;       // height * width; a larger image is an Error
};

/// Reads JPEG (gray, RGB, CMYK, YCCK; the first image of an MPO), PNG, TIFF (the first page), WebP and GIF
/// (the first image of an animation), AVIF, HEIF (HEIC), BMP (with and without the file header), Windows
/// icons (the largest image), PNM (P1 to P6, Pf) and JPEG 2000 (up to 16 bits). GIF, AVIF, HEIF and TIFF in
/// CIELab need giflib, libavif, libheif and Little CMS (lcms2) when the library is built. Throws Error naming
/// the file and the cause, of kind
/// `io` if the file is missing or unreadable or memory is short, `format` if it is damaged, empty or not an
/// image, `unsupported` if its format or layout is not supported (PSD, JPEG XL, ...) or needs a library that
/// this build lacks, or if it has more than max_pixels. Differs from Pillow on some damaged files: a wrong
/// checksum in a PNG is an Error everywhere, not only in its header, while defects after the pixels or
/// in other parts (texts, the frames of an animated PNG, unused colors of a BMP) are ignored.
VIT_API Image decode_file(const std::filesystem::path& path, const DecodeOptions& options = {});
/// Decodes the bytes of an image file as decode_file() does; `name` is used for the file in messages.
VIT_API Image decode_bytes(std::span<const std::byte> bytes, const DecodeOptions& options,
                           const std::string& name);

}  // namespace vit
