// The patches of a batch, vit/patchify.h.
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/layers/parts.h"
#include "vit/patch/patchify.h"
#include "vit/patchify.h"

namespace vit {
namespace {

constexpr Where kPatchify{"patchify", ErrorKind::argument};

Shape shape_of_patches(const TensorView<const float>& pixels, std::size_t patch_size) {
  VIT_CHECK(pixels.rank() == 4 && !pixels.empty(), kPatchify, "pixels must have shape (B, K, H, W), got ",
            pixels.describe());
  const GridSize grid = PatchConfig{.size = patch_size}.grid(pixels.dim(2), pixels.dim(3));
  VIT_CHECK(grid.rows != 0, kPatchify, "an image of ", pixels.dim(2), " x ", pixels.dim(3),
            " (height x width) holds no patch of edge ", patch_size);
  return {pixels.dim(0), grid.rows * grid.columns, pixels.dim(1) * patch_size * patch_size};
}

}  // namespace

void patchify(TensorView<const float> pixels, std::size_t patch_size, TensorView<float> patches,
              int threads) {
  const Shape shape = shape_of_patches(pixels, patch_size);
  VIT_CHECK(patches.shape() == shape && !patches.empty(), kPatchify, "patches must have shape ",
            shape.to_string(), ", got ", patches.describe());
  internal::check_rows_apart(patches, kPatchify);
  const std::size_t rows = pixels.dim(2) / patch_size;
  internal::parallel_for(pixels.dim(0) * rows, threads, [&](std::size_t task, int) {
    internal::patchify(pixels[task / rows], {.size = patch_size}, task % rows, patches[task / rows]);
  });
}

Tensor<float> patchify(TensorView<const float> pixels, std::size_t patch_size, int threads) {
  Tensor<float> patches(shape_of_patches(pixels, patch_size));
  patchify(pixels, patch_size, patches, threads);
  return patches;
}

}  // namespace vit
