// The list of the tensors of an encoder of pages.
#include "vit/weights/page_weights.h"

#include "vit/config.h"

namespace vit::internal {

ModelConfig block_config(const PageConfig& c) {
  ModelConfig out;
  out.embed_dim = c.width;
  out.encoder.depth = c.depth;
  out.encoder.norm.eps = c.norm_eps;
  out.attention.num_heads = c.num_heads;
  out.attention.qkv_bias = c.qkv_bias;
  out.attention.proj_bias = c.qkv_bias;
  out.mlp = {.kind = MlpKind::gated, .dim = c.mlp_dim, .activation = c.activation, .bias = c.mlp_bias};
  return out;
}

void for_each_tensor(const PageConfig& c, PageWeights& weights, const VisitTensor& visit) {
  const auto part = [&](Part name, const Shape& shape, WeightTensor& tensor) {
    visit({.part = name}, shape, tensor);
  };
  part(Part::token_table, Shape{c.vocabulary_size, c.width}, weights.token_table);
  part(Part::embed_norm_gamma, Shape{c.width}, weights.embed_norm.gamma);
  part(Part::embed_norm_beta, Shape{c.width}, weights.embed_norm.beta);
  for_each_block_tensor(block_config(c), weights.blocks,
                        [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
                          const bool is_norm1 = id.part == Part::norm1_gamma || id.part == Part::norm1_beta;
                          if (id.block != 0 || !is_norm1) visit(id, shape, tensor);
                        });
  part(Part::norm_gamma, Shape{c.width}, weights.norm.gamma);
  part(Part::norm_beta, Shape{c.width}, weights.norm.beta);
  part(Part::projection_weight, Shape{c.dim, c.width}, weights.projection.weight);
  part(Part::projection_bias, Shape{c.dim}, weights.projection.bias);
}

}  // namespace vit::internal
