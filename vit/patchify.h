// First step of a Vision Transformer: an image in patches. Letters: B images, K channels, H, W pixels, P
// patch edge, N = (H / P) (W / P) patches.
#pragma once

#include <cstddef>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// pixels (B, K, H, W) -> patches (B, N, K P P), row by row of the grid. The numbers of a patch are ordered
/// as the weight (K, P, P) of a convolution: index = channel P P + y P + x. A remainder of the edges is
/// dropped. `threads`: 0 = all. Allocates nothing. Throws Error if the shapes do not match or no patch fits.
VIT_API void patchify(TensorView<const float> pixels, std::size_t patch_size, TensorView<float> patches,
                      int threads = 0);
/// Into new memory.
VIT_API Tensor<float> patchify(TensorView<const float> pixels, std::size_t patch_size, int threads = 0);

}  // namespace vit
