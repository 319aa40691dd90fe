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
  return out;
}

void for_each_tensor(const TextConfig& c, TextTowerWeights& weights, const VisitTensor& visit) {
  const auto part = [&](Part name, const Shape& shape, WeightTensor& tensor) {
    visit({.part = name}, shape, tensor);
  };
  part(Part::token_table, Shape{c.vocabulary_size, c.width}, weights.token_table);
  if (!c.sinusoidal_positions)
    part(Part::position_table, Shape{c.context_length, c.width}, weights.position_table);
  for_each_block_tensor(block_config(c), weights.blocks, visit);
  part(Part::norm_gamma, Shape{c.width}, weights.norm.gamma);
  part(Part::norm_beta, Shape{c.width}, weights.norm.beta);
  if (c.projection_dim != 0) {
    part(Part::projection_weight, Shape{c.projection_dim, c.width}, weights.projection.weight);
    if (c.projection_bias) part(Part::projection_bias, Shape{c.projection_dim}, weights.projection.bias);
  }
  if (!c.score) return;
  part(Part::logit_scale, Shape{}, weights.logit_scale);
  part(Part::logit_bias, Shape{}, weights.logit_bias);
}

}  // namespace vit::internal
