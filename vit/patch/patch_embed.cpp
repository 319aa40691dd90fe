#include "vit/patch/patch_embed.h"

#include <algorithm>

#include "vit/base/parallel.h"
#include "vit/patch/patchify.h"

namespace vit {

PatchEmbed::PatchEmbed(Linear projection, Tensor<float> prefix, std::size_t patch_size)
    : projection_(std::move(projection)), prefix_(std::move(prefix)), patch_size_(patch_size) {}

void PatchEmbed::forward(TensorView<const float> pixels, const position::PositionContext& position,
                         TensorView<float> rows, TensorView<float> tokens, const QuantisedMemory& memory,
                         int threads, StageTimes* stages) const {
  const GridSize grid = position.grid();
  const std::size_t num_images = pixels.dim(0);
  const std::size_t num_patches = rows.dim(1);
  const std::size_t num_prefix = num_prefix_tokens();
  const std::size_t width = tokens.num_columns();
  {
    const StageTimer timer(stages, Stage::patchify);
    parallel_for(num_images * grid.rows, threads, [&](std::size_t task, int) {
      const std::size_t image = task / grid.rows, row = task % grid.rows;
      patchify(pixels[image], patch_size_, row, rows[image].part(row * grid.columns, grid.columns));
    });
  }
  const StageTimer timer(stages, Stage::embed);

  const TensorView<const float> prefix_rows = position.prefix_rows();
  const std::size_t num_prefix_rows = prefix_rows.empty() ? 0 : prefix_rows.dim(0);
  for (std::size_t image = 0; image < num_images; ++image) {
    const TensorView<float> own = tokens[image];
    for (std::size_t t = 0; t < num_prefix; ++t) {
      float* const out = std::copy_n(prefix_.view().row(t), width, own.row(t)) - width;
      if (t >= num_prefix_rows) continue;
      const float* const added = prefix_rows.row(t);
      for (std::size_t c = 0; c < width; ++c) out[c] += added[c];
    }
    // tokens = rows W^T + b + position, the sum taken while the tile is in registers
    const TensorView<float> patches(own.row(num_prefix), Shape{num_patches, width}, own.row_stride());
    projection_.forward(rows[image], patches, threads, {.residual = position.patch_rows()}, memory);
  }
}

}  // namespace vit
