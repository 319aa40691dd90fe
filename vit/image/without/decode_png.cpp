// Replaces decode_png.cpp in builds whose VIT_CODECS lack png.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_png(const Source& source) {
  refuse_unsupported(source,
                     "PNG files cannot be read: vit was built without this codec; add png to VIT_CODECS, or "
                     "give decoded pixels");
}

std::unique_ptr<RowSource> open_png(const Source& source) {
  decode_png(source);
  return nullptr;
}

}  // namespace vit::internal::codecs
