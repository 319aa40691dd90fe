// Cuts an image into patches: pixels to rows, in raster order. What the rows mean to a model is for
// patch_embed.h. Letters: K channels, H, W pixels, P patch edge, h = H / P, w = W / P, N = h w.
#pragma once

#include <cstdint>
#include <span>

#include "vit/base/tensor.h"
#include "vit/config/patch.h"
#include "vit/position/config.h"

namespace vit::internal {

/// pixels (K, H, W) -> the w of the rows (N, K P P) that belong to the patches of row `grid_row` of the grid,
/// channel-major as in the weight of a convolution (K, P, P): index = channel P P + y P + x. Patch n goes to
/// row n, or to row places[n]. Of `cut` size, padding and steps count. Throws Error if `rows` has another
/// shape or the grid no such row.
void patchify(TensorView<const float> pixels, const PatchConfig& cut, std::size_t grid_row,
              TensorView<float> rows, std::span<const std::uint32_t> places = {});

}  // namespace vit::internal
