// A TIFF in memory for libtiff (tiff_stream.cpp), and the sample layout from its tags (tiff_layout.cpp).
#pragma once

#include <tiffio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

/// The file for libtiff, and its last message.
struct TiffStream {
  std::span<const std::uint8_t> bytes;
  std::uint64_t position = 0;
  char message[256] = "unreadable";
  bool lost_palette = false;
};

struct TiffClose {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using TiffPointer = std::unique_ptr<TIFF, TiffClose>;

/// Reads the first directory. Throws Error if libtiff finds none.
TiffPointer open_tiff_stream(const Source& source, TiffStream& stream);

[[noreturn]] void refuse_data(const Source& source, const TiffStream& stream);

/// The tags that define the meaning of samples.
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

/// Throws Error for a damaged directory, and for layouts that Pillow does not support either.
TiffLayout read_tiff_layout(const Source& source, TIFF* tiff);
/// The plain tags, for samples that are not colors: each is a band. Throws Error for a
/// damaged directory and for unsupported compressions.
TiffLayout read_tiff_tags(const Source& source, TIFF* tiff);

}  // namespace vit::internal::codecs
