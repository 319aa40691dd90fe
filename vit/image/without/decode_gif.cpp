// Stands in for decode_gif.cpp where the library was built without giflib.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

Decoded decode_gif(const Source& source) {
  refuse_missing(source, "GIF", "giflib", "libgif-dev");
}

}  // namespace vit::internal::codecs
