// Replaces decode_avif.cpp in builds without libavif.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

void open_avif() {}

Decoded decode_avif(const Source& source) {
  refuse_missing(source, "AVIF", "libavif", "libavif-dev");
}

}  // namespace vit::internal::codecs
