#include "vit/weights/model_weights.h"

#include <algorithm>

namespace vit::internal {
namespace {

struct Walker {
  const VisitTensor& visit;
  std::size_t block = 0;
  bool joint_head = false;

  void tensor(Part part, const Shape& shape, WeightTensor& weight) const {
    visit({.part = part, .block = block, .joint_head = joint_head}, shape, weight);
  }
  /// `gamma` is followed by its beta.
  void norm(Part gamma, std::size_t width, NormWeights& weights) const {
    tensor(gamma, Shape{width}, weights.gamma);
    tensor(next(gamma), Shape{width}, weights.beta);
  }
  /// `weight` is followed by its bias.
  void linear(Part weight, std::size_t out, std::size_t in, LinearWeights& weights, bool bias = true) const {
    tensor(weight, Shape{out, in}, weights.weight);
    if (bias) tensor(next(weight), Shape{out}, weights.bias);
  }
};

std::size_t position_rows(const ModelConfig& config) {
  const std::size_t patches = config.position.added_grid.rows * config.position.added_grid.columns;
  if (config.position.added == AddedTable::patches) return patches;
  return patches + config.position.added_prefix_rows;
}

void visit_embedding(const ModelConfig& c, ModelWeights& weights, const Walker& walk) {
  const std::size_t width = c.embed_dim, pixels = c.patch_dim();
  if (c.patch_norm) walk.norm(Part::patch_norm_gamma, pixels, weights.patch_norm);
  walk.linear(Part::patch_weight, width, pixels, weights.patch, c.patch_bias);
  if (c.embed_norm) walk.norm(Part::embed_norm_gamma, width, weights.embed_norm);
  if (c.class_token) walk.tensor(Part::class_token, Shape{width}, weights.class_token);
  if (c.distillation_token) walk.tensor(Part::distillation_token, Shape{width}, weights.distillation_token);
  if (c.num_register_tokens != 0) {
    walk.tensor(Part::register_tokens, Shape{c.num_register_tokens, width}, weights.register_tokens);
  }
  if (c.position.added != AddedTable::none) {
    walk.tensor(Part::position_table, Shape{position_rows(c), width}, weights.position_table);
  }
  if (c.position.rope == RopeKind::mixed) {
    walk.tensor(Part::rope_frequencies, Shape{2, c.depth, c.num_heads, c.head_width() / 2},
                weights.rope_frequencies);
  }
  if (c.position.rope == RopeKind::axial && c.position.stored_periods) {
    walk.tensor(Part::rope_periods, Shape{c.head_width() / 4}, weights.rope_periods);
  }
  if (c.norm_pre) walk.norm(Part::norm_pre_gamma, width, weights.norm_pre);
}

void visit_block(const ModelConfig& c, BlockWeights& block, const Walker& walk) {
  const std::size_t width = c.embed_dim, heads = c.attention_dim();
  walk.norm(Part::norm1_gamma, width, block.norm1);
  walk.linear(Part::qkv_weight, 3 * heads, width, block.qkv, c.qkv_bias);
  if (c.attention_norm) walk.norm(Part::attention_norm_gamma, heads, block.attention_norm);
  walk.linear(Part::proj_weight, width, heads, block.proj, c.proj_bias);
  if (c.layer_scale) walk.tensor(Part::scale1, Shape{width}, block.scale1);
  walk.norm(Part::norm2_gamma, width, block.norm2);
  if (c.mlp == MlpKind::gated) walk.linear(Part::gate_weight, c.mlp_dim, width, block.gate, c.mlp_bias);
  walk.linear(Part::fc1_weight, c.mlp_dim, width, block.fc1, c.mlp_bias);
  if (c.mlp_norm) walk.norm(Part::mlp_norm_gamma, c.mlp_dim, block.mlp_norm);
  walk.linear(Part::fc2_weight, width, c.mlp_dim, block.fc2, c.mlp_bias);
  if (c.layer_scale) walk.tensor(Part::scale2, Shape{width}, block.scale2);
}

void visit_head(const ModelConfig& c, ModelWeights& weights, const Walker& walk) {
  const std::size_t width = c.embed_dim;
  if (c.pooling == Pooling::attention) {
    const std::size_t hidden = c.attention_pool.mlp_dim;
    walk.tensor(Part::pool_probe, Shape{width}, weights.pool.probe);
    walk.linear(Part::pool_q_weight, width, width, weights.pool.q);
    walk.linear(Part::pool_kv_weight, 2 * width, width, weights.pool.kv);
    walk.linear(Part::pool_proj_weight, width, width, weights.pool.proj);
    walk.norm(Part::pool_norm_gamma, width, weights.pool.norm);
    walk.linear(Part::pool_fc1_weight, hidden, width, weights.pool.fc1);
    walk.linear(Part::pool_fc2_weight, width, hidden, weights.pool.fc2);
  }
  if (c.pooled_norm) walk.norm(Part::pooled_norm_gamma, width, weights.pooled_norm);
  if (c.pooler) walk.linear(Part::pooler_weight, width, width, weights.pooler);
  if (c.projection_dim != 0 && c.joint_depth == 0)
    walk.linear(Part::projection_weight, c.projection_dim, c.pooled_dim(), weights.projection,
                c.projection_bias);
  if (c.num_classes == 0) return;
  const std::size_t head_in = c.head_input == HeadInput::class_and_patch_mean ? 2 * width : c.pooled_dim();
  walk.linear(Part::head_weight, c.num_classes, head_in, weights.head);
  if (c.head_input == HeadInput::class_and_distillation) {
    walk.linear(Part::head_distillation_weight, c.num_classes, width, weights.head_distillation);
  }
}

}  // namespace

ModelConfig joint_head_blocks(const ModelConfig& config) {
  ModelConfig joint;
  joint.embed_dim = config.embed_dim;
  joint.depth = config.joint_depth;
  joint.num_heads = config.num_heads;
  joint.head_dim = config.head_dim;
  joint.mlp = MlpKind::gated;
  joint.mlp_dim = config.joint_mlp_dim;
  joint.activation = Activation::silu;
  joint.norm_eps = config.joint_norm_eps;
  joint.qkv_bias = false;
  joint.layer_scale = true;
  return joint;
}

void for_each_block_tensor(const ModelConfig& c, std::vector<BlockWeights>& blocks,
                           const VisitTensor& visit) {
  blocks.resize(c.depth);
  for (std::size_t i = 0; i < c.depth; ++i) visit_block(c, blocks[i], {.visit = visit, .block = i});
}

void for_each_tensor(const ModelConfig& c, ModelWeights& weights, const VisitTensor& visit) {
  const Walker walk{visit};
  visit_embedding(c, weights, walk);
  for_each_block_tensor(c, weights.blocks, visit);
  if (c.token_norm) walk.norm(Part::norm_gamma, c.embed_dim, weights.norm);
  visit_head(c, weights, walk);
  if (c.joint_depth == 0) return;
  const ModelConfig joint = joint_head_blocks(c);
  weights.joint_blocks.resize(joint.depth);
  for (std::size_t i = 0; i < joint.depth; ++i)
    visit_block(joint, weights.joint_blocks[i], {.visit = visit, .block = i, .joint_head = true});
  const Walker after{.visit = visit, .joint_head = true};
  after.norm(Part::norm_gamma, c.embed_dim, weights.joint_norm);
}

}  // namespace vit::internal
