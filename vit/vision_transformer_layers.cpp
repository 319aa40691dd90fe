// Builds the layers of a model from its weights, tensor by tensor: each is read, packed and dropped again.
#include "vit/vision_transformer_layers.h"

#include <algorithm>
#include <utility>

#include "vit/base/parallel.h"
#include "vit/kernels/kernels.h"

namespace vit {
namespace {

Linear make_linear(const LinearWeights& weights, const kernels::KernelTable& kernels,
                   Dtype dtype = Dtype::f32) {
  const WeightNumbers weight = weights.weight.load();
  return Linear(weight, weights.bias.load().flat(), kernels, dtype);
}

LayerNorm make_norm(const NormWeights& weights, float eps, const kernels::KernelTable& kernels) {
  return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), eps, kernels);
}

std::optional<LayerNorm> make_optional_norm(const NormWeights& weights, float eps,
                                            const kernels::KernelTable& kernels) {
  if (!weights.gamma.present()) return std::nullopt;
  return make_norm(weights, eps, kernels);
}

Attention make_attention(const BlockWeights& block, const ModelConfig& config,
                         const kernels::KernelTable& kernels, Dtype dtype) {
  return Attention(make_linear(block.qkv, kernels, dtype),
                   make_optional_norm(block.attention_norm, config.norm_eps, kernels),
                   make_linear(block.proj, kernels, dtype), config.num_heads, kernels, dtype);
}

Mlp make_mlp(const LinearWeights& fc1, const NormWeights& norm, const LinearWeights& fc2,
             Activation activation, float eps, const kernels::KernelTable& kernels, Dtype dtype) {
  return Mlp(make_linear(fc1, kernels, dtype), make_optional_norm(norm, eps, kernels),
             make_linear(fc2, kernels, dtype), activation);
}

GatedMlp make_gated_mlp(const BlockWeights& block, const ModelConfig& config,
                        const kernels::KernelTable& kernels, Dtype dtype) {
  return GatedMlp(make_linear(block.gate, kernels, dtype), make_linear(block.fc1, kernels, dtype),
                  make_optional_norm(block.mlp_norm, config.norm_eps, kernels),
                  make_linear(block.fc2, kernels, dtype), config.activation);
}

Block make_block(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels,
                 Dtype dtype) {
  const auto mlp = [&]() -> std::variant<Mlp, GatedMlp> {
    if (config.mlp == MlpKind::gated) return make_gated_mlp(block, config, kernels, dtype);
    return make_mlp(block.fc1, block.mlp_norm, block.fc2, config.activation, config.norm_eps, kernels, dtype);
  };
  return Block(make_norm(block.norm1, config.norm_eps, kernels),
               make_attention(block, config, kernels, dtype), block.scale1.load().to_tensor(),
               make_norm(block.norm2, config.norm_eps, kernels), mlp(), block.scale2.load().to_tensor());
}

Encoder make_encoder(const ModelConfig& config, const ModelWeights& weights,
                     const kernels::KernelTable& kernels, Dtype dtype) {
  std::vector<Block> blocks;
  blocks.reserve(config.depth);
  for (const BlockWeights& block : weights.blocks)
    blocks.push_back(make_block(block, config, kernels, dtype));
  return Encoder(make_optional_norm(weights.norm_pre, config.norm_eps, kernels), std::move(blocks),
                 config.num_heads);
}

/// Patches are embedded with more digits than blocks have: few of the products, and all others build on them.
PatchEmbed make_patch_embed(const ModelConfig& config, const ModelWeights& weights,
                            const kernels::KernelTable& kernels, Dtype dtype) {
  Tensor<float> prefix;
  if (config.num_prefix_tokens() != 0) {
    prefix = Tensor<float>(Shape{config.num_prefix_tokens(), config.embed_dim});
    float* out = prefix.data();
    for (const WeightTensor* part :
         {&weights.class_token, &weights.distillation_token, &weights.register_tokens}) {
      out = std::ranges::copy(part->load().flat(), out).out;
    }
  }
  const bool rounds = dtype == Dtype::i8 && kernels.bf16->round_rows != nullptr;
  const Dtype embed_dtype = rounds ? Dtype::bf16 : Dtype::f32;
  return PatchEmbed(make_linear(weights.patch, kernels, embed_dtype), std::move(prefix), config.patch_size);
}

position::Position make_position(const ModelConfig& config, const ModelWeights& weights) {
  const WeightNumbers table = weights.position_table.load();
  const WeightNumbers frequencies = weights.rope_frequencies.load();
  const WeightNumbers periods = weights.rope_periods.load();
  return position::Position(
      config.position,
      {.embed_dim = config.embed_dim,
       .depth = config.depth,
       .num_heads = config.num_heads,
       .head_dim = config.head_width()},
      {.added_table = table, .mixed_frequencies = frequencies, .periods = periods.flat()});
}

std::optional<AttentionPool> make_pool(const ModelConfig& config, const ModelWeights& weights,
                                       const kernels::KernelTable& kernels, Dtype dtype) {
  if (config.pooling != Pooling::attention) return std::nullopt;
  const AttentionPoolWeights& pool = weights.pool;
  const WeightNumbers probe = pool.probe.load();
  Tensor<float> query(Shape{1, config.embed_dim});  // the projected probe is the same for every image
  make_linear(pool.q, kernels)
      .forward(TensorView<const float>(probe.data(), Shape{1, config.embed_dim}), query, /*threads=*/1);
  return AttentionPool(
      std::move(query), make_linear(pool.kv, kernels, dtype), make_linear(pool.proj, kernels, dtype),
      make_norm(pool.norm, config.norm_eps, kernels),
      make_mlp(pool.fc1, {}, pool.fc2, config.attention_pool.activation, config.norm_eps, kernels, dtype),
      config.attention_pool.num_heads, kernels, dtype);
}

ModelLayers pack_layers(const ModelConfig& config, const ModelWeights& weights,
                        const kernels::KernelTable& kernels, Dtype dtype) {
  ModelLayers layers{.patch_embed = make_patch_embed(config, weights, kernels, dtype),
                     .position = make_position(config, weights),
                     .encoder = make_encoder(config, weights, kernels, dtype),
                     .norm = make_optional_norm(weights.norm, config.norm_eps, kernels),
                     .pool = make_pool(config, weights, kernels, dtype),
                     .pooled_norm = make_optional_norm(weights.pooled_norm, config.norm_eps, kernels)};
  if (config.pooler) layers.pooler.emplace(make_linear(weights.pooler, kernels));
  if (config.projection_dim != 0) layers.projection.emplace(make_linear(weights.projection, kernels));
  if (config.num_classes == 0) return layers;
  layers.head.emplace(make_linear(weights.head, kernels));
  if (config.head_input == HeadInput::class_and_distillation) {
    layers.head_distillation.emplace(make_linear(weights.head_distillation, kernels));
  }
  return layers;
}

}  // namespace

ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights,
                         const kernels::KernelTable& kernels, Dtype dtype) {
  std::optional<ModelLayers> layers;
  with_team(/*threads=*/0, [&] { layers.emplace(pack_layers(config, weights, kernels, dtype)); });
  return std::move(*layers);
}

}  // namespace vit
