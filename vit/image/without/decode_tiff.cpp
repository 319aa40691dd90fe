// Replaces decode_tiff.cpp, tiff_layout.cpp and tiff_stream.cpp in builds whose VIT_CODECS lack tiff.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_tiff(const Source& source) {
  refuse_unsupported(
      source,
      "TIFF files cannot be read: vit was built without this codec; add tiff to VIT_CODECS, or give decoded "
      "pixels");
}

std::unique_ptr<RowSource> open_tiff(const Source& source) {
  decode_tiff(source);
  return nullptr;
}

std::optional<Bands> decode_tiff_bands(const Source& source, std::size_t /*num_bands*/) {
  decode_tiff(source);
  return std::nullopt;
}

}  // namespace vit::internal::codecs
