// The bounds of a layer that clips its inputs and outputs, as transformers and timm name them for Gemma 4.
#pragma once

#include "vit/weights/families/layout.h"

/// The four rows of a part whose tensors have names that begin with the literal `name`.
#define VIT_BOUNDS(part, name)                                                      \
  joined(part, {0, 4}, name ".input_min"), joined(part, {1, 4}, name ".input_max"), \
      joined(part, {2, 4}, name ".output_min"), joined(part, {3, 4}, name ".output_max")

namespace vit::internal {

/// Bounds that a file keeps though its configuration does not use them.
inline constexpr Ignored kUnusedBounds[] = {
    {"*_proj.input_min", "the configuration does not clip"},
    {"*_proj.input_max", "the configuration does not clip"},
    {"*_proj.output_min", "the configuration does not clip"},
    {"*_proj.output_max", "the configuration does not clip"},
};

}  // namespace vit::internal
