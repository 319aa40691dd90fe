#include "vit/weights/families/text_family.h"

namespace vit::internal {

std::span<const TextFamily* const> text_families() {
  static constexpr const TextFamily* kAll[] = {&kHfTextFamily, &kTipsv2TextFamily, &kOpenClipTextFamily,
                                               &kDinoTextFamily, &kOpenAiTextFamily};
  return kAll;
}

}  // namespace vit::internal
