// The names of a text tower in OpenAI's CLIP code, which other pages share: OpenCLIP, Meta's Perception
// Encoder.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The tower with its projection (D, E), and the logit scale without bias.
Layout openai_text_layout();

/// Tensors of the image tower, and buffers.
extern const std::span<const Ignored> kOpenAiTextIgnored;

}  // namespace vit::internal
