// The table of OpenAI's CLIP code, whose names OpenCLIP's own image tower kept.
#pragma once

#include "vit/weights/families/layout.h"

namespace vit::internal {

Layout openai_layout();

}  // namespace vit::internal
