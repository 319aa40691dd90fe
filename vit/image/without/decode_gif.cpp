// Replaces decode_gif.cpp in builds without giflib.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_gif(const Source& source) {
  refuse_missing(source, "GIF", "giflib", "libgif-dev");
}

}  // namespace vit::internal::codecs
