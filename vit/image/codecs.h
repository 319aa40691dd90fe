// Shared declarations of the format decoders and decode.cpp; not part of the library's interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/image/image_file.h"
#include "vit/image/row_source.h"

namespace vit::internal::codecs {

/// One image file in memory.
struct Source {
  std::span<const std::uint8_t> bytes;
  std::string name;
  std::size_t max_pixels = 0;
  Alpha alpha = Alpha::drop;  // treatment of transparency by rows
};

/// An image as its file stores it. Both use no memory until written: the header of a short file may claim
/// gigabytes that it does not contain.
struct Decoded {
  Image image;
  Tensor<std::uint8_t> alpha;  // (H, W), or empty: opaque
  int orientation = 1;         // EXIF value 1..8 still to be applied ...
  bool always_rotate = false;  // ... regardless of the options
};

constexpr Where kDecode{"decode", ErrorKind::format};

constexpr Where kReadFile = kDecode.with(ErrorKind::io);

/// Throws Error "<name>: <cause>" of kind `format`: the file is damaged, or not an image.
template <typename... Parts>
[[noreturn]] void refuse(const Source& source, const Parts&... cause) {
  fail(kDecode, source.name, ": ", cause...);
}

/// Throws Error "<name>: <cause>" of kind `unsupported`: the file may be well-formed, but it has unsupported
/// contents, or more pixels or work than allowed.
template <typename... Parts>
[[noreturn]] void refuse_unsupported(const Source& source, const Parts&... cause) {
  fail(kDecode.with(ErrorKind::unsupported), source.name, ": ", cause...);
}

/// Throws Error: this build of the library cannot read `format`.
[[noreturn]] inline void refuse_missing(const Source& source, std::string_view format,
                                        std::string_view library, std::string_view package) {
  refuse_unsupported(source, format, " files cannot be read: vit was built without ", library,
                     " (Debian package ", package, "); install it and build vit again, or convert the file");
}

/// Opens the library that reads `format`. Throws Error about this file if it is missing.
template <typename Open>
void open_for(const Source& source, std::string_view format, Open open) {
  try {
    open();
  } catch (const Error& error) {
    refuse_unsupported(source, format, " files cannot be read: ", std::string(error.message()),
                       ", or convert the file");
  }
}

/// Returns the result of `step`. Throws Error if memory is short.
template <typename Step>
auto within_memory(const Source& source, Step step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    fail(kReadFile, source.name, ": not enough memory for this image");
  } catch (const std::length_error&) {
    fail(kReadFile, source.name, ": not enough memory for this image");
  }
}

/// Throws Error if a header specifies no pixels or too many. Called before every allocation.
void check_size(const Source& source, std::uint64_t width, std::uint64_t height);

/// Big and little endian numbers at an offset that the caller has checked.
constexpr std::uint32_t be16(const std::uint8_t* p) {
  return static_cast<std::uint32_t>(p[0]) << 8 | p[1];
}
constexpr std::uint32_t le16(const std::uint8_t* p) {
  return static_cast<std::uint32_t>(p[1]) << 8 | p[0];
}
constexpr std::uint32_t be32(const std::uint8_t* p) {
  return be16(p) << 16 | be16(p + 2);
}
constexpr std::uint32_t le32(const std::uint8_t* p) {
  return le16(p + 2) << 16 | le16(p);
}

/// Pillow's CMYK to RGB of one pixel; 255 is full ink.
inline void cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb) {
  const int light = 255 - cmyk[3];
  for (int c = 0; c < 3; ++c) {
    const int product = cmyk[c] * light + 128;
    const int value = light - (((product >> 8) + product) >> 8);
    rgb[c] = static_cast<std::uint8_t>(value < 0 ? 0 : value);
  }
}

/// CIELab of D50 (L from 0 to 255, a and b with 128 for 0) to sRGB, `count` pixels of 3 bytes in place, as
/// Pillow 13 does. Needs an optional library; without it throws Error by refuse_missing().
void lab_to_rgb(const Source& source, std::uint8_t* pixels, std::size_t count);

/// Orientation 1..8 of an EXIF block (a TIFF structure, with or without "Exif\0\0" before it), 1 if it
/// has any other value; 0 if it has none.
int exif_orientation(std::span<const std::uint8_t> exif) noexcept;
/// Orientation of an XMP packet, `tiff:Orientation="n"` or `<tiff:Orientation>n`; 0 if it has none.
int xmp_orientation(std::span<const std::uint8_t> xmp) noexcept;

/// Throws Error if a JPEG 2000 codestream is truncated, is not gray or RGB of at most 16 bits, or would cost
/// its decoder disproportionately much for its size. `length` bytes of `code` belong to it; the following
/// ones may, too.
void check_codestream(const Source& source, std::span<const std::uint8_t> code, std::size_t length);

/// A bitmap in an icon, and the position of its pixels in the source.
struct IconBitmap {
  Image image;
  std::size_t pixels = 0;
};

IconBitmap decode_icon_bitmap(const Source& source);

/// All rows of `rows`, which was not started. Transparency is already handled.
Decoded decode_rows(RowSource& rows);

/// Decoders that deliver rows. Each throws Error as its decode function does.
std::unique_ptr<RowSource> open_jpeg(const Source& source);
std::unique_ptr<RowSource> open_png(const Source& source);
std::unique_ptr<RowSource> open_bmp(const Source& source);
std::unique_ptr<RowSource> open_pnm(const Source& source);
/// Null for tiles, planes of samples, and an image that its tag rotates.
std::unique_ptr<RowSource> open_tiff(const Source& source);

/// decode_bands() of a TIFF.
std::optional<Bands> decode_tiff_bands(const Source& source, std::size_t num_bands);

/// Every decoder checks the complete file and throws Error if Pillow refuses it.
Decoded decode_jpeg(const Source& source);
Decoded decode_png(const Source& source);
Decoded decode_tiff(const Source& source);
Decoded decode_webp(const Source& source);
Decoded decode_bmp(const Source& source);
Decoded decode_dib(const Source& source);
Decoded decode_ico(const Source& source);
Decoded decode_pnm(const Source& source);
Decoded decode_jpeg2000(const Source& source);
/// These need optional libraries; without them each throws Error by refuse_missing().
Decoded decode_gif(const Source& source);
Decoded decode_avif(const Source& source);
Decoded decode_heif(const Source& source);
/// Open the libraries of these two, if they are opened late. Throw Error if they are missing.
void open_avif();
void open_heif();

}  // namespace vit::internal::codecs
