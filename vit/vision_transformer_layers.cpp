// Builds the layers of a model from its weights, tensor by tensor: each is read, packed and dropped again.
#include "vit/vision_transformer_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

/// Makes layers of weights: with one arithmetic for blocks and attention pooling, and float32 for all else.
class Builder {
 public:
  Builder(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels,
          Precision precision)
      : config_(config),
        weights_(weights),
        kernels_(kernels),
        arithmetic_(arithmetic_of(kernels, precision)),
        float32_(*kernels.float32->linear) {}

  ModelLayers build() const {
    return {.patch_embed = patch_embed(),
            .positions = std::make_unique<const position::PositionCache>(position()),
            .encoder = encoder(),
            .head = Head(config_, head())};
  }

 private:
  Linear linear(const LinearWeights& weights, const kernels::LinearKernels& kernels) const {
    const WeightNumbers weight = weights.weight.load();
    return Linear(weight, weights.bias.load().flat(), kernels);
  }
  Linear linear(const LinearWeights& weights) const { return linear(weights, *arithmetic_.linear); }

  LayerNorm norm(const NormWeights& weights) const {
    return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), config_.norm_eps, kernels_);
  }
  std::optional<LayerNorm> optional_norm(const NormWeights& weights) const {
    if (!weights.gamma.present()) return std::nullopt;
    return norm(weights);
  }

  PatchEmbed patch_embed() const {
    Tensor<float> prefix;
    if (config_.num_prefix_tokens() != 0) {
      prefix = Tensor<float>(Shape{config_.num_prefix_tokens(), config_.embed_dim});
      float* out = prefix.data();
      for (const WeightTensor* part :
           {&weights_.class_token, &weights_.distillation_token, &weights_.register_tokens}) {
        out = std::ranges::copy(part->load().flat(), out).out;
      }
    }
    return PatchEmbed(
        linear(weights_.patch, *arithmetic_.fine), std::move(prefix), config_.patch_size,
        {.pixels = optional_norm(weights_.patch_norm), .projected = optional_norm(weights_.embed_norm)});
  }

  position::Position position() const {
    const WeightNumbers table = weights_.position_table.load();
    const WeightNumbers frequencies = weights_.rope_frequencies.load();
    const WeightNumbers periods = weights_.rope_periods.load();
    return position::Position(
        config_.position,
        {.embed_dim = config_.embed_dim,
         .depth = config_.depth,
         .num_heads = config_.num_heads,
         .head_dim = config_.head_width()},
        {.added_table = table, .mixed_frequencies = frequencies, .periods = periods.flat()});
  }

  Block block(const BlockWeights& block) const {
    Attention attention(linear(block.qkv), optional_norm(block.attention_norm), linear(block.proj),
                        config_.num_heads, arithmetic_.attention);
    std::optional<Linear> gate;
    if (config_.mlp == MlpKind::gated) gate.emplace(linear(block.gate));
    Mlp mlp({.gate = std::move(gate), .fc1 = linear(block.fc1)}, optional_norm(block.mlp_norm),
            linear(block.fc2), config_.activation);
    return Block(norm(block.norm1), std::move(attention), block.scale1.load().to_tensor(), norm(block.norm2),
                 std::move(mlp), block.scale2.load().to_tensor());
  }

  Encoder encoder() const {
    std::vector<Block> blocks;
    blocks.reserve(config_.depth);
    for (const BlockWeights& weights : weights_.blocks) blocks.push_back(block(weights));
    return Encoder(optional_norm(weights_.norm_pre), std::move(blocks), config_.num_heads);
  }

  AttentionPool pool() const {
    const AttentionPoolWeights& pool = weights_.pool;
    const WeightNumbers probe = pool.probe.load();
    Tensor<float> query(Shape{1, config_.embed_dim});  // the projected probe is the same for every image
    Activations none;
    linear(pool.q, float32_)
        .forward(TensorView<const float>(probe.data(), Shape{1, config_.embed_dim}), query,
                 {.activations = none});
    Mlp mlp({.fc1 = linear(pool.fc1)}, {}, linear(pool.fc2), config_.attention_pool.activation);
    return AttentionPool(std::move(query), linear(pool.kv), linear(pool.proj), norm(pool.norm),
                         std::move(mlp), config_.attention_pool.num_heads, arithmetic_.attention);
  }

  HeadLayers head() const {
    HeadLayers layers{.norm = optional_norm(weights_.norm)};
    if (config_.pooling == Pooling::attention) layers.pool.emplace(pool());
    layers.pooled_norm = optional_norm(weights_.pooled_norm);
    if (config_.pooler) layers.pooler.emplace(linear(weights_.pooler, float32_));
    if (config_.projection_dim != 0) layers.projection.emplace(linear(weights_.projection, float32_));
    if (config_.num_classes == 0) return layers;
    layers.classifier.emplace(linear(weights_.head, float32_));
    if (config_.head_input == HeadInput::class_and_distillation)
      layers.classifier_distillation.emplace(linear(weights_.head_distillation, float32_));
    return layers;
  }

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const kernels::KernelTable& kernels_;
  const kernels::Arithmetic& arithmetic_;
  const kernels::LinearKernels& float32_;
};

}  // namespace

ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights,
                         const kernels::KernelTable& kernels, Precision precision) {
  std::optional<ModelLayers> layers;
  with_team(/*threads=*/0, [&] { layers.emplace(Builder(config, weights, kernels, precision).build()); });
  return std::move(*layers);
}

}  // namespace vit::internal
