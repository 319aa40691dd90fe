#include "apps/vit/commands/info/flops.h"

namespace vit::app {

Flops count_flops(const ModelConfig& config, GridSize grid, std::size_t num_leading) {
  const auto real = [](std::size_t value) { return static_cast<double>(value); };
  const double patches = real(grid.rows) * real(grid.columns), patch = real(config.patch_size);
  const double tokens = real(config.num_prefix_tokens()) + patches;
  const double width = real(config.embed_dim), depth = real(config.depth), hidden = real(config.mlp_dim);

  Flops flops;
  flops.patch_embed = 2 * patches * width * real(config.num_channels) * patch * patch;
  // Rows that ask in the attention of all blocks together: queries, projected and sent through the MLP.
  const double rows = (depth - 1) * tokens + (num_leading > 0 ? real(num_leading) : tokens);
  flops.attention_linear = depth * 2 * tokens * width * 2 * width + 2 * rows * width * 2 * width;
  flops.attention = 2 * 2 * rows * tokens * width;
  flops.mlp = 2 * rows * width * hidden * (config.mlp == MlpKind::gated ? 3 : 2);
  if (config.pooling == Pooling::attention) {
    const double pool_hidden = real(config.attention_pool.mlp_dim);
    flops.head += 2 * tokens * width * 2 * width;  // keys and values
    flops.head += 2 * 2 * tokens * width;          // one query against all keys, and the sum
    flops.head += 2 * 2 * width * width;           // query and output projection
    flops.head += 2 * 2 * width * pool_hidden;
  }
  if (config.pooler) flops.head += 2 * width * width;
  if (config.joint_depth == 0) flops.head += 2 * width * real(config.projection_dim);
  flops.head += real(config.joint_depth) * tokens *
                (2 * 4 * width * width + 4 * tokens * width + 2 * 3 * width * real(config.joint_mlp_dim));
  const double classifier_inputs = config.head_input == HeadInput::pooled ? width : 2 * width;
  flops.head += 2 * classifier_inputs * real(config.num_classes);
  return flops;
}

}  // namespace vit::app
