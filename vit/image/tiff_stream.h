// Access of libtiff to a TIFF in memory.
#pragma once

#include <tiffio.h>

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

}  // namespace vit::internal::codecs
