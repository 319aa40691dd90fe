#include "vit/patch/patch_embed.h"

#include <algorithm>

#include "vit/base/parallel.h"
#include "vit/patch/patchify.h"

namespace vit::internal {

PatchEmbed::PatchEmbed(Linear projection, Tensor<float> prefix, const PatchConfig& cut, PatchNorms norms,
                       std::optional<Linear> of_clips)
    : projection_(std::move(projection)),
      prefix_(std::move(prefix)),
      cut_(cut),
      norms_(std::move(norms)),
      of_clips_(std::move(of_clips)) {}

void PatchEmbed::cut(TensorView<const float> pixels, const PositionContext& position, std::size_t step,
                     std::size_t row, TensorView<float> patches) const {
  const GridSize grid = position.grid();
  const std::size_t num_patches = grid.rows * grid.columns;
  const position::WindowOrder* const windows = position.windows();
  const std::span<const std::uint32_t> places =
      windows != nullptr ? std::span<const std::uint32_t>(windows->places) : std::span<const std::uint32_t>();
  const TensorView<float> of_step = patches.part(step * num_patches, num_patches);
  patchify(pixels, cut_, row, of_step, places);
  if (cut_.pixels == PixelRule::unchanged) return;
  for (std::size_t patch = row * grid.columns; patch < (row + 1) * grid.columns; ++patch)
    normalize_pixels(of_step.row(places.empty() ? patch : places[patch]));
}

void PatchEmbed::forward(TensorView<const float> pixels, const PositionContext& position,
                         TensorView<float> tokens, const Pass& pass) const {
  const TensorView<float> patches = pass.activations.patches;  // (B, N, K P P)
  const std::size_t num_images = pixels.dim(0), num_steps = position.num_steps();
  const std::size_t rows = position.grid().rows;
  const std::size_t num_channels = projection_.in_features() / (cut_.size * cut_.size);
  const std::size_t planes = planes_of_step(pixels.dim(1), num_steps, num_channels);
  const bool repeats = planes == pixels.dim(1);
  {
    const StageTimer timer(pass.times, Stage::patchify);
    parallel_for(num_images * num_steps * rows, pass.threads, [&](std::size_t task, int) {
      const std::size_t image = task / rows / num_steps, step = task / rows % num_steps;
      cut(pixels[image].part(repeats ? 0 : step * planes, planes), position, step, task % rows,
          patches[image]);
    });
  }
  const StageTimer timer(pass.times, Stage::embed);
  const bool has_window_tokens = position.windows() != nullptr && position.windows()->has_window_tokens();
  for (std::size_t image = 0; image < num_images; ++image) {
    if (has_window_tokens) {
      project_windows(patches[image], position, tokens[image], pass);
      continue;
    }
    write_prefix(position.prefix_rows(), tokens[image]);
    project(patches[image], position.patch_rows(), tokens[image].part(num_prefix_tokens(), patches.dim(1)),
            pass);
  }
  const TensorView<float> all(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
  if (norms_.tokens) norms_.tokens->forward(all, all, pass.threads);
}

void PatchEmbed::normalize_pixels(float* patch) const {
  const std::size_t of_channel = cut_.size * cut_.size;
  if (cut_.pixels == PixelRule::centered) {
    for (std::size_t i = 0; i < projection_.in_features(); ++i) patch[i] = 2.0f * (patch[i] - 0.5f);
    return;
  }
  for (std::size_t channel = 0; channel < norms_.mean.num_elements(); ++channel) {
    const float mean = norms_.mean.data()[channel], std = norms_.std.data()[channel];
    float* const values = patch + channel * of_channel;
    for (std::size_t i = 0; i < of_channel; ++i) values[i] = (values[i] - mean) / std;
  }
}

void PatchEmbed::project(TensorView<float> patches, TensorView<const float> added, TensorView<float> tokens,
                         const Pass& pass) const {
  if (norms_.pixels) norms_.pixels->forward(patches, patches, pass.threads);
  const bool are_clips = of_clips_ && patches.dim(1) == of_clips_->in_features();
  const Linear& projection = are_clips ? *of_clips_ : projection_;
  if (!norms_.projected) {
    // tokens = patches W^T + b + position, the sum taken while the tile is in registers
    projection.forward(patches, tokens, pass, {.residual = added});
    return;
  }
  projection.forward(patches, tokens, pass);
  norms_.projected->forward(tokens, tokens, pass.threads);
  if (added.empty()) return;
  for (std::size_t t = 0; t < tokens.num_rows(); ++t) {
    for (std::size_t c = 0; c < tokens.num_columns(); ++c) tokens.row(t)[c] += added.row(t)[c];
  }
}

void PatchEmbed::project_windows(TensorView<float> patches, const PositionContext& position,
                                 TensorView<float> tokens, const Pass& pass) const {
  const position::WindowOrder& order = *position.windows();
  const TensorView<const float> token_row = position.prefix_rows(), added = position.patch_rows();
  const std::size_t width = tokens.num_columns();
  for (std::size_t window = 0; window + 1 < order.starts.size(); ++window) {
    const std::size_t start = order.starts[window], count = order.starts[window + 1] - start - 1;
    const std::size_t first = start - window;  // of its patches
    float* const token = tokens.row(start);
    std::copy_n(prefix_.view().row(window), width, token);
    for (std::size_t c = 0; c < width && !token_row.empty(); ++c) token[c] += token_row.row(0)[c];
    project(patches.part(first, count), added.empty() ? added : added.part(first, count),
            tokens.part(start + 1, count), pass);
  }
}

void PatchEmbed::write_prefix(TensorView<const float> added, TensorView<float> tokens) const {
  const std::size_t num_added = added.empty() ? 0 : added.dim(0);
  for (std::size_t t = 0; t < num_prefix_tokens(); ++t) {
    float* const out = tokens.row(t);
    std::copy_n(prefix_.view().row(t), tokens.num_columns(), out);
    if (t >= num_added) continue;
    for (std::size_t c = 0; c < tokens.num_columns(); ++c) out[c] += added.row(t)[c];
  }
}

}  // namespace vit::internal
