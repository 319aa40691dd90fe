// Builds the layers of a model from its weights, tensor by tensor: each is converted, packed and dropped again.
#include "vit/model_layers.h"

#include <algorithm>
#include <utility>

#include "vit/kernels/kernels.h"

namespace vit {
namespace {

Linear make_linear(const LinearWeights& weights, const kernels::KernelTable& kernels) {
  const Tensor<float> weight = weights.weight.load();
  const Tensor<float> bias = weights.bias.load();
  return Linear(weight, bias.flat(), kernels);
}

LayerNorm make_norm(const NormWeights& weights, float eps, const kernels::KernelTable& kernels) {
  return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), eps, kernels);
}

std::optional<LayerNorm> make_optional_norm(const NormWeights& weights, float eps, const kernels::KernelTable& kernels) {
  if (!weights.gamma.present()) return std::nullopt;
  return make_norm(weights, eps, kernels);
}

Attention make_attention(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels,
                         Dtype dtype) {
  const Tensor<float> qkv_weight = block.qkv.weight.load(), qkv_bias = block.qkv.bias.load();
  const Tensor<float> gamma = block.attention_norm.gamma.load(), beta = block.attention_norm.beta.load();
  const Tensor<float> proj_weight = block.proj.weight.load(), proj_bias = block.proj.bias.load();
  return Attention({.qkv_weight = qkv_weight,
                    .qkv_bias = qkv_bias.flat(),
                    .norm_gamma = gamma.flat(),
                    .norm_beta = beta.flat(),
                    .proj_weight = proj_weight,
                    .proj_bias = proj_bias.flat()},
                   config.num_heads, config.norm_eps, kernels, dtype);
}

Mlp make_mlp(const LinearWeights& fc1, const NormWeights& norm, const LinearWeights& fc2, Activation activation,
             float eps, const kernels::KernelTable& kernels, Dtype dtype) {
  const Tensor<float> weight1 = fc1.weight.load(), bias1 = fc1.bias.load();
  const Tensor<float> gamma = norm.gamma.load(), beta = norm.beta.load();
  const Tensor<float> weight2 = fc2.weight.load(), bias2 = fc2.bias.load();
  return Mlp({.fc1_weight = weight1,
              .fc1_bias = bias1.flat(),
              .norm_gamma = gamma.flat(),
              .norm_beta = beta.flat(),
              .fc2_weight = weight2,
              .fc2_bias = bias2.flat()},
             activation, eps, kernels, dtype);
}

GatedMlp make_gated_mlp(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels,
                        Dtype dtype) {
  const Tensor<float> gate_weight = block.gate.weight.load(), gate_bias = block.gate.bias.load();
  const Tensor<float> value_weight = block.fc1.weight.load(), value_bias = block.fc1.bias.load();
  const Tensor<float> gamma = block.mlp_norm.gamma.load(), beta = block.mlp_norm.beta.load();
  const Tensor<float> weight2 = block.fc2.weight.load(), bias2 = block.fc2.bias.load();
  return GatedMlp({.gate_weight = gate_weight,
                   .gate_bias = gate_bias.flat(),
                   .value_weight = value_weight,
                   .value_bias = value_bias.flat(),
                   .norm_gamma = gamma.flat(),
                   .norm_beta = beta.flat(),
                   .fc2_weight = weight2,
                   .fc2_bias = bias2.flat()},
                  config.activation, config.norm_eps, kernels, dtype);
}

Block make_block(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels, Dtype dtype) {
  const auto mlp = [&]() -> std::variant<Mlp, GatedMlp> {
    if (config.mlp == MlpKind::gated) return make_gated_mlp(block, config, kernels, dtype);
    return make_mlp(block.fc1, block.mlp_norm, block.fc2, config.activation, config.norm_eps, kernels, dtype);
  };
  return Block(make_norm(block.norm1, config.norm_eps, kernels), make_attention(block, config, kernels, dtype),
               block.scale1.load(), make_norm(block.norm2, config.norm_eps, kernels), mlp(), block.scale2.load());
}

Encoder make_encoder(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels,
                     Dtype dtype) {
  std::vector<Block> blocks;
  blocks.reserve(config.depth);
  for (const BlockWeights& block : weights.blocks) blocks.push_back(make_block(block, config, kernels, dtype));
  return Encoder(make_optional_norm(weights.norm_pre, config.norm_eps, kernels), std::move(blocks), config.num_heads);
}

PatchEmbed make_patch_embed(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels) {
  Tensor<float> prefix;
  if (config.num_prefix_tokens() != 0) {
    prefix = Tensor<float>(Shape{config.num_prefix_tokens(), config.embed_dim});
    float* out = prefix.data();
    for (const WeightTensor* part : {&weights.class_token, &weights.distillation_token, &weights.register_tokens}) {
      out = std::ranges::copy(part->load().flat(), out).out;
    }
  }
  return PatchEmbed(make_linear(weights.patch, kernels), std::move(prefix), config.patch_size);
}

position::Position make_position(const ModelConfig& config, const ModelWeights& weights) {
  const Tensor<float> table = weights.position_table.load();
  const Tensor<float> frequencies = weights.rope_frequencies.load();
  const Tensor<float> periods = weights.rope_periods.load();
  return position::Position(config.position,
                            {.embed_dim = config.embed_dim,
                             .depth = config.depth,
                             .num_heads = config.num_heads,
                             .head_dim = config.head_dim()},
                            {.added_table = table, .mixed_frequencies = frequencies, .periods = periods.flat()});
}

std::optional<AttentionPool> make_pool(const ModelConfig& config, const ModelWeights& weights,
                                       const kernels::KernelTable& kernels) {
  if (config.pooling != Pooling::attention) return std::nullopt;
  const AttentionPoolWeights& pool = weights.pool;
  const Tensor<float> probe = pool.probe.load();
  Tensor<float> query(Shape{1, config.embed_dim});  // the projected probe is the same for every image
  make_linear(pool.q, kernels)
      .forward(TensorView<const float>(probe.data(), Shape{1, config.embed_dim}), query, /*threads=*/1);
  return AttentionPool(std::move(query), make_linear(pool.kv, kernels), make_linear(pool.proj, kernels),
                       make_norm(pool.norm, config.norm_eps, kernels),
                       make_mlp(pool.fc1, {}, pool.fc2, config.attention_pool.activation, config.norm_eps, kernels, Dtype::f32),
                       config.attention_pool.num_heads, kernels);
}

}  // namespace

ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels,
                         Dtype dtype) {
  ModelLayers layers{.patch_embed = make_patch_embed(config, weights, kernels),
                     .position = make_position(config, weights),
                     .encoder = make_encoder(config, weights, kernels, dtype),
                     .norm = make_optional_norm(weights.norm, config.norm_eps, kernels),
                     .pool = make_pool(config, weights, kernels),
                     .pooled_norm = make_optional_norm(weights.pooled_norm, config.norm_eps, kernels)};
  if (config.projection_dim != 0) layers.projection.emplace(make_linear(weights.projection, kernels));
  if (config.num_classes == 0) return layers;
  layers.head.emplace(make_linear(weights.head, kernels));
  if (config.head_input == HeadInput::class_and_distillation) {
    layers.head_distillation.emplace(make_linear(weights.head_distillation, kernels));
  }
  return layers;
}

}  // namespace vit
