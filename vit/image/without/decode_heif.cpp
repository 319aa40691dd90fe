// Replaces decode_heif.cpp in builds without libheif.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_heif(const Source& source) {
  refuse_missing(source, "HEIF", "libheif", "libheif-dev");
}

}  // namespace vit::internal::codecs
