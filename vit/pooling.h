// From the tokens of an image to one vector. Letters: B images, T tokens, C channels.
#pragma once

#include <cstddef>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Mean of the tokens from `first` on, as of the patches after the prefix: tokens (B, T, C) -> out (B, C),
/// summed in double. Allocates nothing. Throws Error if the shapes do not match or no token is left.
VIT_API void pool_mean(TensorView<const float> tokens, std::size_t first, TensorView<float> out);

}  // namespace vit
