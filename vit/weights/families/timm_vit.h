// The tables of timm's VisionTransformer and Eva classes, which OpenCLIP's files with a timm tower use too.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

Layout timm_layout(const SourceFiles& files, const Architecture& architecture, const TimmArgs& args);

}  // namespace vit::internal
