#include "vit/weights/model_weights.h"

#include <algorithm>

namespace vit::internal {
namespace {

using Visit = std::function<void(const std::string&, const Shape&, WeightTensor&)>;

struct Walker {
  const Visit& visit;

  void norm(const std::string& name, std::size_t width, NormWeights& weights) const {
    visit(name + ".gamma", Shape{width}, weights.gamma);
    visit(name + ".beta", Shape{width}, weights.beta);
  }
  void linear(const std::string& name, std::size_t out, std::size_t in, LinearWeights& weights,
              bool bias = true) const {
    visit(name + ".weight", Shape{out, in}, weights.weight);
    if (bias) visit(name + ".bias", Shape{out}, weights.bias);
  }
};

std::size_t position_rows(const ModelConfig& config) {
  const std::size_t patches = config.position.added_grid.rows * config.position.added_grid.columns;
  if (config.position.added == AddedTable::patches) return patches;
  return patches + config.position.added_prefix_rows;
}

void visit_block(const ModelConfig& c, const std::string& name, BlockWeights& block, const Walker& walk) {
  const std::size_t width = c.embed_dim;
  walk.norm(name + ".norm1", width, block.norm1);
  const std::size_t heads = c.attention_dim();
  walk.linear(name + ".qkv", 3 * heads, width, block.qkv, c.qkv_bias);
  if (c.attention_norm) walk.norm(name + ".attention_norm", heads, block.attention_norm);
  walk.linear(name + ".proj", width, heads, block.proj, c.proj_bias);
  if (c.layer_scale) walk.visit(name + ".scale1", Shape{width}, block.scale1);
  walk.norm(name + ".norm2", width, block.norm2);
  if (c.mlp == MlpKind::gated) walk.linear(name + ".gate", c.mlp_dim, width, block.gate, c.mlp_bias);
  walk.linear(name + ".fc1", c.mlp_dim, width, block.fc1, c.mlp_bias);
  if (c.mlp_norm) walk.norm(name + ".mlp_norm", c.mlp_dim, block.mlp_norm);
  walk.linear(name + ".fc2", width, c.mlp_dim, block.fc2, c.mlp_bias);
  if (c.layer_scale) walk.visit(name + ".scale2", Shape{width}, block.scale2);
}

void visit_head(const ModelConfig& c, ModelWeights& weights, const Walker& walk) {
  const std::size_t width = c.embed_dim;
  if (c.pooling == Pooling::attention) {
    const std::size_t hidden = c.attention_pool.mlp_dim;
    walk.visit("pool.probe", Shape{width}, weights.pool.probe);
    walk.linear("pool.q", width, width, weights.pool.q);
    walk.linear("pool.kv", 2 * width, width, weights.pool.kv);
    walk.linear("pool.proj", width, width, weights.pool.proj);
    walk.norm("pool.norm", width, weights.pool.norm);
    walk.linear("pool.fc1", hidden, width, weights.pool.fc1);
    walk.linear("pool.fc2", width, hidden, weights.pool.fc2);
  }
  if (c.pooled_norm) walk.norm("pooled_norm", width, weights.pooled_norm);
  if (c.pooler) walk.linear("pooler", width, width, weights.pooler);
  if (c.projection_dim != 0)
    walk.linear("projection", c.projection_dim, width, weights.projection, c.projection_bias);
  if (c.num_classes == 0) return;
  const std::size_t head_in = c.head_input == HeadInput::class_and_patch_mean ? 2 * width : width;
  walk.linear("head", c.num_classes, head_in, weights.head);
  if (c.head_input == HeadInput::class_and_distillation) {
    walk.linear("head_distillation", c.num_classes, width, weights.head_distillation);
  }
}

}  // namespace

Tensor<float> WeightNumbers::to_tensor() && {
  if (!lender_) return std::move(own_);
  Tensor<float> copy(numbers_.shape());
  std::ranges::copy(flat(), copy.data());
  return copy;
}

void for_each_tensor(const ModelConfig& c, ModelWeights& weights, const Visit& visit) {
  const Walker walk{visit};
  const std::size_t width = c.embed_dim;
  walk.linear("patch", width, 3 * c.patch_size * c.patch_size, weights.patch, c.patch_bias);
  if (c.class_token) visit("class_token", Shape{width}, weights.class_token);
  if (c.distillation_token) visit("distillation_token", Shape{width}, weights.distillation_token);
  if (c.num_register_tokens != 0) {
    visit("register_tokens", Shape{c.num_register_tokens, width}, weights.register_tokens);
  }
  if (c.position.added != AddedTable::none) {
    visit("position_table", Shape{position_rows(c), width}, weights.position_table);
  }
  if (c.position.rope == RopeKind::mixed) {
    visit("rope_frequencies", Shape{2, c.depth, c.num_heads, c.head_width() / 2}, weights.rope_frequencies);
  }
  if (c.position.rope == RopeKind::axial && c.position.stored_periods) {
    visit("rope_periods", Shape{c.head_width() / 4}, weights.rope_periods);
  }
  if (c.norm_pre) walk.norm("norm_pre", width, weights.norm_pre);
  weights.blocks.resize(c.depth);
  for (std::size_t i = 0; i < c.depth; ++i)
    visit_block(c, "blocks." + std::to_string(i), weights.blocks[i], walk);
  if (c.token_norm) walk.norm("norm", width, weights.norm);
  visit_head(c, weights, walk);
}

}  // namespace vit::internal
