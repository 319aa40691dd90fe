// Replaces decode_webp.cpp in builds whose VIT_CODECS lack webp.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_webp(const Source& source) {
  refuse_unsupported(source,
                     "WebP files cannot be read: vit was built without this codec; add webp to VIT_CODECS, "
                     "or give decoded pixels");
}

}  // namespace vit::internal::codecs
