// The table of OpenAI's CLIP code, whose names OpenCLIP's own image tower kept.
#pragma once

#include "vit/io/tensor_file.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

Layout openai_layout();
/// Whether these are OpenAI's own: three integers lie next to the weights.
bool is_openai_state(const TensorFile& tensors);

}  // namespace vit::internal
