// The list of a text tower's tensors.
#include "vit/weights/text_tower_weights.h"

#include "vit/config.h"

namespace vit::internal {

ModelConfig block_config(const TextConfig& c) {
  ModelConfig out;
  out.embed_dim = c.width;
  out.encoder.depth = c.depth;
  out.attention.num_heads = c.num_heads;
  out.mlp.dim = c.mlp_dim;
  out.encoder.norm.eps = c.norm_eps;
  out.mlp.activation = c.activation;
  out.attention.qkv_bias = c.qkv_bias;
  if (c.sum_norm) out.encoder.block_norms = BlockNorms::of_sums;
  return out;
}

void for_each_tensor(const TextConfig& c, TextTowerWeights& weights, const VisitTensor& visit) {
  const auto part = [&](Part name, const Shape& shape, WeightTensor& tensor) {
    visit({.part = name}, shape, tensor);
  };
  const auto norm = [&](Part gamma, NormWeights& of) {
    part(gamma, Shape{c.width}, of.gamma);
    part(next(gamma), Shape{c.width}, of.beta);
  };
  part(Part::token_table, Shape{c.vocabulary_size, c.width}, weights.token_table);
  if (!c.sinusoidal_positions)
    part(Part::position_table, Shape{c.first_position + c.context_length, c.width}, weights.position_table);
  if (c.token_types != 0) part(Part::token_types, Shape{c.token_types, c.width}, weights.token_types);
  if (c.token_norm) norm(Part::norm_pre_gamma, weights.token_norm);
  for_each_block_tensor(block_config(c), weights.blocks, visit);
  if (c.final_norm) norm(Part::norm_gamma, weights.norm);
  if (c.pooler_dim != 0) {
    part(Part::pooler_weight, Shape{c.pooler_dim, c.width}, weights.pooler.weight);
    part(Part::pooler_bias, Shape{c.pooler_dim}, weights.pooler.bias);
  }
  if (c.projection_dim != 0) {
    part(Part::projection_weight, Shape{c.projection_dim, c.pooled_dim()}, weights.projection.weight);
    if (c.projection_bias) part(Part::projection_bias, Shape{c.projection_dim}, weights.projection.bias);
  }
  if (!c.score) return;
  part(Part::logit_scale, Shape{}, weights.logit_scale);
  part(Part::logit_bias, Shape{}, weights.logit_bias);
}

}  // namespace vit::internal
