// Stands in for decode_avif.cpp where the library was built without libavif.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_avif(const Source& source) {
  refuse_missing(source, "AVIF", "libavif", "libavif-dev");
}

}  // namespace vit::internal::codecs
