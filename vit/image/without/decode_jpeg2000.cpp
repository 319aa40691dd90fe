// Replaces decode_jpeg2000.cpp in builds whose VIT_CODECS lack jpeg2000.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_jpeg2000(const Source& source) {
  refuse_unsupported(source,
                     "JPEG 2000 files cannot be read: vit was built without this codec; add jpeg2000 to "
                     "VIT_CODECS, or give decoded pixels");
}

}  // namespace vit::internal::codecs
