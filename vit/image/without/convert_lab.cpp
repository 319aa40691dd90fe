// Replaces convert_lab.cpp in builds without Little CMS.
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

void lab_to_rgb(const Source& source, std::uint8_t*, std::size_t) {
  refuse_missing(source, "CIELab TIFF", "Little CMS", "liblcms2-dev");
}

}  // namespace vit::internal::codecs
