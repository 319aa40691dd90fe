#include "vit/towers/layer_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "vit/config.h"
#include "vit/towers/outlier_channels.h"

namespace vit::internal {

namespace {

Clip clip_of(const WeightTensor& tensor) {
  const Tensor<float> bounds = tensor.load();
  const float* const b = bounds.data();
  return {.lowest_in = b[0], .highest_in = b[1], .lowest_out = b[2], .highest_out = b[3]};
}

}  // namespace

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

std::vector<std::uint32_t> LayerBuilder::outliers(const NormWeights& norm) const {
  if (!norm.gamma.present() || !arithmetic_.linear->has_outliers) return {};
  return outlier_channels(norm.gamma.load().flat(), norm.beta.load().flat());
}

Linear LayerBuilder::linear(const LinearWeights& weights, const NormWeights& norm,
                            const WeightTensor& clip) const {
  const Tensor<float> weight = weights.weight.load();
  Linear layer(weight, weights.bias.load().flat(), *arithmetic_.linear, outliers(norm));
  if (clip.present()) layer.set_clip(clip_of(clip));
  return layer;
}

std::vector<Linear> LayerBuilder::clipped_qkv(const BlockWeights& block) const {
  const Tensor<float> weight = block.qkv.weight.load(), bias = block.qkv.bias.load();
  const std::vector<std::uint32_t> columns = outliers(block.norm1);
  std::vector<Linear> layers;
  std::size_t first = 0;
  for (const WeightTensor* clip : {&block.q_clip, &block.k_clip, &block.v_clip}) {
    const std::size_t rows = first == 0 ? config_.attention_dim() : config_.key_dim(/*block=*/0);
    layers.emplace_back(weight.view().part(first, rows),
                        bias.empty() ? std::span<const float>() : bias.flat().subspan(first, rows),
                        *arithmetic_.linear, columns);
    layers.back().set_clip(clip_of(*clip));
    first += rows;
  }
  return layers;
}

LayerNorm LayerBuilder::norm(const NormWeights& weights, float epsilon) const {
  return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), epsilon, kernels_);
}

LayerNorm LayerBuilder::norm(const NormWeights& weights) const {
  return norm(weights, config_.encoder.norm.eps);
}

LayerNorm LayerBuilder::plain_rms_norm(std::size_t width, float epsilon) const {
  const std::vector<float> ones(width, 1.0f);
  return LayerNorm(ones, {}, epsilon, kernels_);
}

std::optional<LayerNorm> LayerBuilder::optional_norm(const NormWeights& weights) const {
  if (!weights.gamma.present()) return std::nullopt;
  return norm(weights);
}

/// The second layer of an MLP; of models with experts the channels of the expert come last.
Linear LayerBuilder::fc2(const BlockWeights& block) const {
  if (!block.fc2_expert.weight.present()) return linear(block.fc2, block.mlp_norm, block.fc2_clip);
  const std::size_t width = config_.embed_dim;
  Tensor<float> weight(Shape{width, config_.mlp.dim}), bias;
  float* rows = weight.data();
  for (const LinearWeights* part : {&block.fc2, &block.fc2_expert})
    rows = std::ranges::copy(part->weight.load().flat(), rows).out;
  if (config_.mlp.bias) {
    bias = Tensor<float>(Shape{width});
    float* numbers = bias.data();
    for (const LinearWeights* part : {&block.fc2, &block.fc2_expert})
      numbers = std::ranges::copy(part->bias.load().flat(), numbers).out;
  }
  return Linear(weight, bias.flat(), *arithmetic_.linear, outliers(block.mlp_norm));
}

void LayerBuilder::limit(std::optional<Linear>& gate, Linear& value) const {
  constexpr float kAny = std::numeric_limits<float>::infinity();
  const float most = config_.mlp.limit;
  if (!gate || most == 0) return;
  gate->set_clip({.lowest_in = -kAny, .highest_in = kAny, .lowest_out = -kAny, .highest_out = most});
  value.set_clip({.lowest_in = -kAny, .highest_in = kAny, .lowest_out = -most, .highest_out = most});
}

// Source: timm, layers/diff_attention.py; Ye et al. 2024 for the initial value of a block.
Differential LayerBuilder::differential(const BlockWeights& block, std::size_t index) const {
  const Tensor<float> stored = block.lambda.load();  // q1, k1, q2, k2
  const std::size_t half = stored.num_elements() / 4;
  const auto product = [&](std::size_t first) {
    double sum = 0.0;
    for (std::size_t i = 0; i < half; ++i)
      sum += static_cast<double>(stored.data()[first + i]) *
             static_cast<double>(stored.data()[first + half + i]);
    return std::exp(sum);
  };
  const double initial = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(index));
  constexpr float kEpsilon = 1e-5f;
  return {.lambda = static_cast<float>(product(0) - product(2 * half) + initial),
          .factor = static_cast<float>(1.0 - initial),
          .norm = norm(block.sub_norm, kEpsilon)};
}

Block LayerBuilder::block(const BlockWeights& block, std::size_t index) const {
  const bool sum_norm = config_.encoder.block_norms == BlockNorms::of_sums;
  const NormWeights none;
  const NormWeights& attention_input = sum_norm ? none : block.norm1;
  const NormWeights& mlp_input = sum_norm                      ? none
                                 : block.norm2.gamma.present() ? block.norm2
                                                               : block.norm1;  // or none
  HeadNorms head_norms{.queries = optional_norm(block.q_norm), .keys = optional_norm(block.k_norm)};
  if (config_.attention.value_norm)
    head_norms.values = plain_rms_norm(config_.head_width(), config_.encoder.norm.eps);
  Attention attention(linear(block.qkv, attention_input), std::move(head_norms),
                      optional_norm(block.attention_norm),
                      linear(block.proj, block.attention_norm, block.proj_clip), config_.attention.num_heads,
                      arithmetic_.attention);
  if (config_.attention.differential) attention.set_differential(differential(block, index));
  if (config_.encoder.clipped) attention.set_clipped(clipped_qkv(block));
  MlpInput in{.fc1 = linear(block.fc1, mlp_input, block.fc1_clip)};
  if (config_.mlp.kind == MlpKind::gated) in.gate.emplace(linear(block.gate, mlp_input, block.gate_clip));
  limit(in.gate, in.fc1);
  Mlp mlp(std::move(in), optional_norm(block.mlp_norm), fc2(block), config_.mlp.activation);
  BranchEnd end1{.norm = optional_norm(block.branch_norm1), .scale = block.scale1.load()};
  BranchEnd end2{.norm = optional_norm(block.branch_norm2), .scale = block.scale2.load()};
  std::optional<LayerNorm> norm1 = optional_norm(block.norm1), norm2 = optional_norm(block.norm2);
  if (sum_norm) {
    end1.sum_norm.swap(norm1);
    end2.sum_norm.swap(norm2);
  }
  return Block(std::move(norm1), std::move(attention), std::move(end1), std::move(norm2), std::move(mlp),
               std::move(end2));
}

/// Builds the layer of a step whose input is `width` wide.
struct LayerBuilder::StepBuilder {
  const LayerBuilder& layers;
  const MergerStepWeights& weights;
  std::size_t width;

  MergerLayer operator()(const MergerNorm& step) const {
    return step.has_weights ? layers.norm(weights.norm, step.norm.eps)
                            : layers.plain_rms_norm(width, step.norm.eps);
  }
  MergerLayer operator()(const MergerAffine&) const {
    return AffineLayer{.shift = weights.shift.load(), .scale = weights.scale.load()};
  }
  MergerLayer operator()(const MergerGelu&) const { return GeluLayer{}; }
  MergerLayer operator()(const MergerSoftmax& step) const { return SoftmaxLayer{step.dim}; }
  MergerLayer operator()(const MergerLinear&) const { return layers.linear(weights.fc1); }
  MergerLayer operator()(const MergerConvolution& step) const {
    return ConvolutionLayer{.product = layers.linear(weights.fc1), .stride = step.stride};
  }
  MergerLayer operator()(const MergerCells& step) const {
    return CellsLayer{.size = step.size, .is_mean = step.rule == CellRule::mean};
  }
  MergerLayer operator()(const MergerMlp& step) const {
    MlpLayer mlp{.fc1 = layers.linear(weights.fc1),
                 .fc2 = layers.linear(weights.fc2),
                 .activation = step.activation,
                 .out_activation = step.out_activation};
    if (step.gated) mlp.gate.emplace(layers.linear(weights.gate));
    layers.limit(mlp.gate, mlp.fc1);
    return mlp;
  }
};

MergerLayers LayerBuilder::merger(const MergerConfig& config, const MergerWeights& weights) const {
  MergerLayers out;
  if (config.cells.token_norm) out.token_norm = norm(weights.token_norm, config.cells.token_norm->eps);
  std::size_t width = config.cell_width(config_.embed_dim);
  for (std::size_t i = 0; i < config.steps.size(); ++i) {
    out.steps.push_back(std::visit(StepBuilder{*this, weights.steps[i], width}, config.steps[i].layer));
    width = config.steps[i].width(width);
  }
  return out;
}

std::vector<Block> LayerBuilder::blocks(std::span<const BlockWeights> weights) const {
  std::vector<Block> blocks;
  blocks.reserve(weights.size());
  for (const BlockWeights& block_weights : weights) blocks.push_back(block(block_weights, blocks.size()));
  return blocks;
}

}  // namespace vit::internal
