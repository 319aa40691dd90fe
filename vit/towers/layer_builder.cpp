#include "vit/towers/layer_builder.h"

#include <utility>

namespace vit::internal {

LayerBuilder::LayerBuilder(const ModelConfig& config, const kernels::KernelTable& kernels,
                           Precision precision)
    : config_(config),
      kernels_(kernels),
      arithmetic_(arithmetic_of(kernels, precision)),
      float32_(*kernels.float32->linear) {}

Linear LayerBuilder::linear(const LinearWeights& weights, const kernels::LinearKernels& kernels) const {
  const Tensor<float> weight = weights.weight.load();
  return Linear(weight, weights.bias.load().flat(), kernels);
}

Linear LayerBuilder::linear(const LinearWeights& weights) const {
  return linear(weights, *arithmetic_.linear);
}

LayerNorm LayerBuilder::norm(const NormWeights& weights) const {
  return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), config_.norm_eps, kernels_);
}

std::optional<LayerNorm> LayerBuilder::optional_norm(const NormWeights& weights) const {
  if (!weights.gamma.present()) return std::nullopt;
  return norm(weights);
}

Block LayerBuilder::block(const BlockWeights& block) const {
  Attention attention(linear(block.qkv), optional_norm(block.attention_norm), linear(block.proj),
                      config_.num_heads, arithmetic_.attention);
  std::optional<Linear> gate;
  if (config_.mlp == MlpKind::gated) gate.emplace(linear(block.gate));
  Mlp mlp({.gate = std::move(gate), .fc1 = linear(block.fc1)}, optional_norm(block.mlp_norm),
          linear(block.fc2), config_.activation);
  return Block(norm(block.norm1), std::move(attention), block.scale1.load(), norm(block.norm2),
               std::move(mlp), block.scale2.load());
}

std::vector<Block> LayerBuilder::blocks(std::span<const BlockWeights> weights) const {
  std::vector<Block> blocks;
  blocks.reserve(weights.size());
  for (const BlockWeights& block_weights : weights) blocks.push_back(block(block_weights));
  return blocks;
}

}  // namespace vit::internal
