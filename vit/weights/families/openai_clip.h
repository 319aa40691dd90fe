// The tables of OpenAI's CLIP code, whose names other pages share: OpenCLIP's own towers, the text tower of
// Meta's Perception Encoder.
#pragma once

#include <span>

#include "vit/io/tensor_file.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

Layout openai_layout();
/// Whether these are OpenAI's own: three integers lie next to the weights.
bool is_openai_state(const TensorFile& tensors);

/// The text tower with its projection (D, E), and the logit scale without bias.
Layout openai_text_layout();
/// Next to the text tower: tensors of the image tower, and buffers.
extern const std::span<const Ignored> kOpenAiTextIgnored;

}  // namespace vit::internal
