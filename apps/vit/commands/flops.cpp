#include "apps/vit/commands/flops.h"

#include "vit/config.h"

#include <algorithm>
#include <variant>

namespace vit::app {
namespace {

double real(std::size_t value) {
  return static_cast<double>(value);
}

/// Average number of keys a token attends to with window attention.
double keys_in_windows(GridSize grid, std::size_t window) {
  double pairs = 0;
  for (std::size_t top = 0; top < grid.rows; top += window) {
    for (std::size_t left = 0; left < grid.columns; left += window) {
      const double tokens =
          real(std::min(window, grid.rows - top)) * real(std::min(window, grid.columns - left));
      pairs += tokens * tokens;
    }
  }
  return pairs / (real(grid.rows) * real(grid.columns));
}

/// Multiply-adds of the steps of a merger for a cell; steps that read maps make fewer vectors of them.
double merger_products(const MergerConfig& merger, std::size_t embed_dim) {
  double sum = 0, share = 1;  // of the vectors that are left
  std::size_t width = merger.cell_width(embed_dim);
  for (const MergerStep& step : merger.steps) {
    if (const auto* convolution = std::get_if<MergerConvolution>(&step.layer)) {
      share /= real(convolution->stride * convolution->stride);
      sum += share * 9 * real(width) * real(convolution->dim);
    }
    if (const auto* cells = std::get_if<MergerCells>(&step.layer)) share /= real(cells->size * cells->size);
    if (std::holds_alternative<MergerLinear>(step.layer))
      sum += share * real(width) * real(step.width(width));
    if (const auto* mlp = std::get_if<MergerMlp>(&step.layer))
      sum += share * real(mlp->hidden_dim) * (real(width) * (mlp->gated ? 2 : 1) + real(mlp->out_dim));
    width = step.width(width);
  }
  return sum;
}

/// FLOPs of a merger, and of those between blocks.
double merger_flops(const ModelConfig& config, GridSize grid) {
  if (!config.merger) return 0;
  const MergerConfig& merger = *config.merger;
  const std::size_t m = merger.cells.size;
  const double cells = real((grid.rows + m - 1) / m) * real((grid.columns + m - 1) / m);
  const double between =
      real(merger.deepstack.size()) * merger_products(deepstack_merger(merger), config.embed_dim);
  return 2 * cells * (merger_products(merger, config.embed_dim) + between);
}

/// Multiply-adds of the layers of a branch on patches and registers of width C.
struct DenseProducts {
  double patches, registers, width, patch_edge;

  double operator()(const DptConfig& c, const DenseBranch& branch) const {
    const double features = real(c.features), unit = 2 * 9 * features * features;
    // the maps of the taps have 16, 4, 1 and a quarter of the patches, and those of fusion the same, from the
    // deepest
    constexpr double kSizes[] = {16, 4, 1, 0.25};
    double sum = 0;
    for (std::size_t k = 0; k < c.channels.size(); ++k) {
      const double channels = real(c.channels[k]), size = kSizes[k] * patches;
      if (c.readout == ClassReadout::projected) sum += patches * width * width;
      sum += patches * width * channels;
      if (k < 2) sum += size * channels * channels;
      if (k == 3) sum += size * 9 * channels * channels;
      sum += size * 9 * channels * features;
      sum += size * (unit * (k + 1 < c.channels.size() ? 2 : 1) + features * features);
    }
    const double fused = 64 * patches;
    double in = features;
    if (c.extra_channels != 0) {
      sum += fused * 9 * in * real(c.extra_channels);
      in = real(c.extra_channels);
    }
    const double result = c.head_size == HeadSize::fused     ? fused
                          : c.head_size == HeadSize::doubled ? 4 * fused
                                                             : patches * patch_edge * patch_edge;
    if (c.layers == HeadLayersKind::convolutions) sum += fused * 9 * in * in / 2;
    if (c.layers == HeadLayersKind::classes) sum += fused * 9 * in * in;
    for (const MapOutput& output : branch.outputs) {
      const double outputs = real(output.channels), hidden = real(c.hidden);
      if (c.layers == HeadLayersKind::convolutions) sum += result * (9 * in / 2 * hidden + hidden * outputs);
      if (c.layers == HeadLayersKind::classes) sum += fused * in * outputs;
      if (c.layers == HeadLayersKind::linear) sum += result * in * outputs;
    }
    return sum;
  }
  double operator()(const LinearMapConfig&, const DenseBranch& branch) const {
    return patches * width * real(branch.taps.size()) * real(branch.outputs.front().channels);
  }
  double operator()(const MaskConfig& c, const DenseBranch& branch) const {
    const double queries = real(c.queries);
    double sum = queries * width * (3 * width + real(branch.outputs.back().channels)), size = patches;
    for (std::size_t i = 0; i < c.doublings; ++i) {
      sum += size * 4 * width * width;
      size *= 4;
      sum += size * 9 * width;
    }
    return sum + size * width * queries;
  }
  double operator()(const HeatmapConfig& c, const DenseBranch& branch) const {
    const double keypoints = real(branch.outputs.front().channels), channels = real(c.channels);
    if (c.decoder == HeatmapDecoder::simple)
      return patches * real(c.enlarged * c.enlarged) * 9 * width * keypoints;
    // of 4x4 places of a transposed convolution with stride 2 each output has 4
    return patches * (4 * 4 * width * channels + 16 * (4 * channels * channels + channels * keypoints));
  }
  double operator()(const BoxConfig& c, const DenseBranch& branch) const {
    double of_token = 0;
    for (const MapOutput& output : branch.outputs) {
      const bool is_linear = output.meaning == Output::box_vectors || output.meaning == Output::box_terms;
      of_token += width * (real(output.channels) + (is_linear ? 0 : 2 * width));
    }
    return (c.tokens == BoxTokens::patches ? patches : registers) * of_token;
  }
  double operator()(const QueryBoxConfig& c, const DenseBranch& branch) const {
    const double queries = real(c.queries), side = real(c.width), inner = real(c.inner);
    const double square = side * side, classes = real(branch.outputs.back().channels);
    double sum = 0, pixels = 0;
    for (const MapScale scale : c.levels) {
      const double size = (scale == MapScale::twice ? 4 : scale == MapScale::half ? 0.25 : 1) * patches;
      const double taps = real(branch.taps.size()) * width;
      if (scale == MapScale::twice) sum += size * taps * width / 2;
      if (scale == MapScale::half) sum += size * 9 * taps * width;
      sum += size * (taps / (scale == MapScale::twice ? 2 : 1) * 2 * inner);
      sum += size * real(c.pairs) * 2 * 9 * inner * inner + size * (2 + real(c.pairs)) * inner * side;
      pixels += size;
    }
    sum += pixels * (square + side * classes) + queries * (2 * square + side * (4 + classes));
    const double samples = real(c.sampling_heads * c.levels.size() * c.points);
    const double layer =
        queries * (5 * square + 2 * queries * side + 3 * samples * side + 2 * real(c.mlp_dim) * side) +
        pixels * square;
    return sum + queries * 3 * square + real(c.layers) * layer;
  }
};

}  // namespace

double count_dense_flops(const DenseConfig& config, const ModelConfig& backbone, GridSize grid) {
  const DenseProducts products{.patches = real(grid.rows) * real(grid.columns),
                               .registers = real(backbone.tokens.num_registers),
                               .width = real(backbone.embed_dim),
                               .patch_edge = real(backbone.patch.size)};
  double sum = 0;
  for (const DenseBranch& branch : config.branches)
    sum += std::visit([&](const auto& layers) { return products(layers, branch); }, branch.layers);
  return 2 * sum;
}

Flops count_flops(const ModelConfig& config, GridSize grid, std::size_t num_leading) {
  const double patches = real(grid.rows) * real(grid.columns), patch = real(config.patch.size);
  const double tokens = real(config.num_prefix_tokens()) + patches;
  const double width = real(config.embed_dim), depth = real(config.encoder.depth),
               hidden = real(config.mlp.dim);

  Flops flops;
  flops.patch_embed = 2 * patches * width * real(config.image.num_channels) * patch * patch;
  // Rows that ask in the attention of all blocks together: queries, projected and sent through the MLP.
  // tokens that enter late are more rows of the last blocks
  const double late_blocks = config.tokens.late ? depth - real(config.tokens.late->block) : 0;
  const double late = late_blocks * real(config.num_late_tokens());
  const double rows = (depth - 1) * tokens + (num_leading > 0 ? real(num_leading) : tokens) + late;
  const double heads = real(config.attention_dim());
  flops.attention_linear = (depth * tokens + late) * 2 * width * 2 * heads + 2 * rows * width * 2 * heads;
  const std::optional<WindowConfig>& windows = config.attention.windows;
  const double global = windows ? real(windows->global_blocks.size()) : depth;
  double keys = tokens;
  if (windows && windows->per_side != 0) keys = tokens / real(windows->per_side * windows->per_side);
  if (windows && windows->per_side == 0) keys = keys_in_windows(grid, windows->size);
  flops.attention = 2 * 2 * (rows - late) / depth * heads * (global * tokens + (depth - global) * keys);
  const double both = tokens + real(config.num_late_tokens());
  flops.attention += 2 * 2 * heads * late_blocks * (both * both - tokens * tokens);
  flops.mlp = 2 * rows * width * hidden * (config.mlp.kind == MlpKind::gated ? 3 : 2);
  if (config.head.pooling == Pooling::attention) {
    const double pool_hidden = real(config.head.attention_pool->mlp_dim);
    flops.head += 2 * tokens * width * 2 * width;  // keys and values
    flops.head += 2 * 2 * tokens * width;          // one query against all keys, and the sum
    flops.head += 2 * 2 * width * width;           // query and output projection
    flops.head += 2 * 2 * width * pool_hidden;
  }
  if (config.head.pooler) flops.head += 2 * width * width;
  if (!config.head.joint) flops.head += 2 * width * real(config.projection_dim());
  if (const std::optional<JointHeadConfig>& joint = config.head.joint) {
    flops.head += real(joint->depth) * tokens *
                  (2 * 4 * width * width + 4 * tokens * width + 2 * 3 * width * real(joint->mlp_dim));
  }
  flops.head += merger_flops(config, grid);
  const double classifier_inputs = config.head.input == HeadInput::pooled ? width : 2 * width;
  flops.head += 2 * classifier_inputs * real(config.head.num_classes);
  return flops;
}

}  // namespace vit::app
