// Replaces decode_heif.cpp in builds without libheif.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

void open_heif() {}

Decoded decode_heif(const Source& source) {
  refuse_missing(source, "HEIF", "libheif", "libheif-dev");
}

}  // namespace vit::internal::codecs
