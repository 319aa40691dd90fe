// What the tags of a TIFF say of its samples.
#pragma once

#include <tiffio.h>

#include <cstddef>
#include <cstdint>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

/// The tags that decide what a sample means.
struct TiffLayout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t bits = 1;
  std::size_t num_samples = 1;
  std::uint16_t format = SAMPLEFORMAT_UINT;
  std::uint16_t photometric = 0;
  std::uint16_t compression = COMPRESSION_NONE;
  bool separate = false;
  bool little_endian = true;
  std::uint16_t orientation = 1;
  std::size_t num_colors = 1;  // samples before the extra ones
  bool has_alpha = false;
  bool premultiplied = false;
  std::uint16_t* palette[3] = {};
};

/// Throws Error for a directory that is damaged, and for layouts that Pillow does not read either.
TiffLayout read_tiff_layout(const Source& source, TIFF* tiff);
/// The tags as they are, for samples that are no colors: every sample is one. Throws Error for a directory
/// that is damaged and for compressions that are not read.
TiffLayout read_tiff_tags(const Source& source, TIFF* tiff);

}  // namespace vit::internal::codecs
