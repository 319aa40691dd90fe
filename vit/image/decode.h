// Image files to RGB pixels, equal to Pillow's Image.open(file).convert("RGB"). One file per format behind
// it; all of them check sizes before they allocate, print nothing, and end in an Error that names the file
// and the cause.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "vit/base/export.h"
#include "vit/image/image.h"

namespace vit {

/// What happens with the orientation that EXIF or else XMP notes (JPEG, PNG, WebP, AVIF). The orientation
/// tag of a TIFF is part of its pixel layout and is always applied, as in Pillow; so is that of a HEIF's
/// container, as in pillow-heif.
enum class Orientation {
  ignore,  // pixels as stored
  apply,   // rotated and mirrored upright
};

/// How a file becomes an Image.
struct DecodeOptions {
  Orientation orientation = Orientation::ignore;
  Alpha alpha = Alpha::drop;
  std::size_t max_pixels = kMaxImagePixels;
};

/// Reads JPEG (grey, RGB, CMYK, YCCK; the first image of an MPO), PNG, TIFF (the first page), WebP and GIF
/// (of an animation the first image), AVIF, HEIF (HEIC), BMP (with and without the file header), Windows
/// icons (the largest image), PNM (P1 to P6, Pf) and JPEG 2000 (up to 16 bits). GIF, AVIF and HEIF need
/// giflib, libavif and libheif when the library is built. Throws Error naming the file and the cause, of kind
/// `io` if the file is missing or unreadable or memory is short, `format` if it is damaged, empty or no
/// image, and `unsupported` if it has a format or a layout that is not read (PSD, JPEG XL, ...) or that this
/// build has no library for, or more than max_pixels. Differs from Pillow on some damaged files: a wrong
/// checksum in a PNG is an Error everywhere, not only in its header, while what is wrong behind the pixels or
/// beside them (texts, the frames of an animated PNG, colors that no pixel of a BMP can name) is none.
VIT_API Image decode_file(const std::filesystem::path& path, const DecodeOptions& options = {});
/// Decodes the bytes of an image file as decode_file() does; `name` stands for the file in messages.
VIT_API Image decode_bytes(std::span<const std::byte> bytes, const DecodeOptions& options,
                           const std::string& name);

}  // namespace vit
