// Replaces decode_jpeg.cpp in builds whose VIT_CODECS lack jpeg.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_jpeg(const Source& source) {
  refuse_unsupported(source,
                     "JPEG files cannot be read: vit was built without this codec; add jpeg to VIT_CODECS, "
                     "or give decoded pixels");
}

std::unique_ptr<RowSource> open_jpeg(const Source& source) {
  decode_jpeg(source);
  return nullptr;
}

}  // namespace vit::internal::codecs
