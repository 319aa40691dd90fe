// The layers of a detector of prompts, built from its weights, tensor by tensor.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "vit/rings/prompts/detector.h"

namespace vit::internal {
namespace {

constexpr float kNormEps = 1e-5f;  // of torch's LayerNorm, whatever the configuration says

class DetectorBuilder {
 public:
  DetectorBuilder(const PromptConfig& config, const PromptWeights& weights,
                  const kernels::KernelTable& kernels, Precision precision)
      : config_(config),
        weights_(weights),
        kernels_(kernels),
        arithmetic_(precision == Precision::float32 ? *kernels.float32 : *kernels.bfloat16),
        products_(*arithmetic_.linear),
        float32_(*kernels.float32->linear) {}

  DetectorParts build() const {
    const std::string fusion = "fusion.";
    return {.neck = neck("neck."),
            .geometry = geometry(),
            .fusion = pre_norm_layers(fusion, config_.fusion, products_),
            .decoder = decoder(),
            .scoring = {.mlp = perceptron("scoring.mlp.", 2),
                        .norm = norm("scoring.norm"),
                        .of_prompt = linear("scoring.prompt", float32_),
                        .of_query = linear("scoring.query", float32_)},
            .masks = masks()};
  }

 private:
  Tensor<float> load(const std::string& name) const { return weights_.at(name).load(); }

  Linear linear(const std::string& name, const kernels::LinearKernels& kernels) const {
    return linear(load(name + ".weight"), load(name + ".bias"), kernels);
  }
  /// A weight whose further dimensions are inputs.
  static Linear linear(const Tensor<float>& weight, const Tensor<float>& bias,
                       const kernels::LinearKernels& kernels) {
    const std::size_t out = weight.dim(0);
    const TensorView<const float> rows(weight.data(), Shape{out, weight.num_elements() / out});
    return {rows, bias.flat(), kernels};
  }
  LayerNorm norm(const std::string& name) const {
    return {load(name + ".weight").flat(), load(name + ".bias").flat(), kNormEps, kernels_};
  }
  Convolution convolution(const std::string& name) const {
    return {load(name + ".weight"), load(name + ".bias").flat(), 1, kernels_, products_};
  }
  Perceptron perceptron(const std::string& name, std::size_t count) const {
    std::vector<Linear> layers;
    for (std::size_t i = 1; i <= count; ++i) layers.push_back(linear(name + std::to_string(i), float32_));
    return Perceptron(std::move(layers));
  }
  /// Rows of queries and of keys are multiplied by these kernels.
  RowsAttention attention(const std::string& name, std::size_t heads, const kernels::LinearKernels& queries,
                          const kernels::LinearKernels& keys) const {
    return {linear(name + ".q_proj", queries),
            linear(name + ".k_proj", keys),
            linear(name + ".v_proj", keys),
            linear(name + ".o_proj", queries),
            heads,
            arithmetic_,
            float32_};
  }
  RowsMlp mlp(const std::string& name, const kernels::LinearKernels& kernels) const {
    return {.fc1 = linear(name + ".fc1", kernels), .fc2 = linear(name + ".fc2", kernels)};
  }
  /// Layers whose own rows are multiplied by `kernels`.
  std::vector<PreNormLayer> pre_norm_layers(const std::string& prefix, const PromptLayersConfig& c,
                                            const kernels::LinearKernels& kernels) const {
    std::vector<PreNormLayer> out;
    const bool are_many = &kernels == &products_;
    for (std::size_t i = 0; i < c.depth; ++i) {
      const std::string layer = prefix + "layers." + std::to_string(i);
      out.emplace_back(
          attention(layer + ".self_attn", c.num_heads, kernels, kernels),
          attention(layer + ".cross_attn", c.num_heads, kernels, are_many ? float32_ : products_),
          mlp(layer + ".mlp", kernels), norm(layer + ".layer_norm1"), norm(layer + ".layer_norm2"),
          norm(layer + ".layer_norm3"), arithmetic_);
    }
    return out;
  }

  NeckLevel growing_level(const std::string& name, bool twice) const {
    const auto kernel = [&](const std::string& part) { return load(name + part); };
    const std::string last = twice ? ".up.1" : ".up.0";
    const ComposedKernel composed = compose(kernel(last + ".weight"), kernel(last + ".bias"),
                                            kernel(".proj1.weight"), kernel(".proj1.bias"));
    NeckLevel out{.smooth = convolution(name + ".proj2")};
    out.grow.emplace(composed.weight.view(), composed.bias.flat(), products_);
    if (twice) out.first.emplace(kernel(".up.0.weight").view(), kernel(".up.0.bias").flat(), products_);
    return out;
  }
  Neck neck(const std::string& name) const {
    NeckLevel coarse{.smooth = convolution(name + "2.proj2")};
    coarse.project.emplace(linear(name + "2.proj1", products_));
    return {growing_level(name + "0", true), growing_level(name + "1", false), std::move(coarse),
            arithmetic_};
  }
  GeometryEncoder geometry() const {
    const std::string name = "geometry.";
    return {{.direct = linear(name + "direct", float32_),
             .pool = linear(name + "pool", float32_),
             .position = linear(name + "position", float32_),
             .final = linear(name + "final", float32_),
             .labels = load(name + "labels"),
             .class_token = load(name + "class_token"),
             .prompt_norm = norm(name + "prompt_norm"),
             .vision_norm = norm(name + "vision_norm"),
             .output_norm = norm(name + "output_norm"),
             .layers = pre_norm_layers(name, config_.geometry, float32_)},
            config_.roi_bins};
  }
  DecoderLayer decoder_layer(const std::string& name) const {
    const std::size_t heads = config_.decoder.num_heads;
    return {.self = attention(name + ".self_attn", heads, float32_, float32_),
            .text = attention(name + ".text_cross_attn", heads, float32_, float32_),
            .image = attention(name + ".vision_cross_attn", heads, float32_, products_),
            .self_norm = norm(name + ".self_attn_layer_norm"),
            .text_norm = norm(name + ".text_cross_attn_layer_norm"),
            .image_norm = norm(name + ".vision_cross_attn_layer_norm"),
            .mlp_norm = norm(name + ".mlp_layer_norm"),
            .mlp = mlp(name + ".mlp", float32_)};
  }
  QueryDecoder decoder() const {
    const std::string name = "decoder.";
    std::vector<DecoderLayer> layers;
    for (std::size_t i = 0; i < config_.decoder.depth; ++i)
      layers.push_back(decoder_layer(name + "layers." + std::to_string(i)));
    return {{.queries = load(name + "queries"),
             .points = load(name + "points"),
             .presence_token = load(name + "presence_token"),
             .layers = std::move(layers),
             .output_norm = norm(name + "output_norm"),
             .presence_norm = norm(name + "presence_norm"),
             .boxes = perceptron(name + "boxes.", 3),
             .presence = perceptron(name + "presence.", 3),
             .position = perceptron(name + "position.", 2),
             .bias_x = perceptron(name + "bias_x.", 2),
             .bias_y = perceptron(name + "bias_y.", 2)},
            arithmetic_};
  }

  /// The projection (D, D) of pixels and its bias (D) as a layer (D + 1, D) of queries: e . (W x + b) = (W^T
  /// e) . x
  /// + e . b.
  Linear fold(const std::string& name) const {
    const Tensor<float> weight = load(name + ".weight"), bias = load(name + ".bias");
    const std::size_t dim = bias.num_elements();
    Tensor<float> rows(Shape{dim + 1, dim});
    for (std::size_t o = 0; o < dim; ++o) {
      for (std::size_t i = 0; i < dim; ++i) rows.data()[i * dim + o] = weight.data()[o * dim + i];
      rows.data()[dim * dim + o] = bias.data()[o];
    }
    return {rows.view(), {}, float32_};
  }
  MaskDecoder masks() const {
    const std::string name = "masks.";
    MaskDecoderLayers out{
        .attention = attention(name + "attention", config_.num_mask_heads, products_, float32_),
        .attention_norm = norm(name + "attention_norm"),
        .refine = {},
        .refine_norm = {},
        .embed = perceptron(name + "embed.", 3),
        .fold = fold(name + "instance"),
        .semantic = Tensor<float>(Shape{config_.dim + 1})};
    for (const char* const number : {"0", "1"}) {
      const std::string of_norm = name + "refine_norm." + number;
      out.refine.push_back(convolution(name + "refine." + number));
      out.refine_norm.emplace_back(load(of_norm + ".weight"), load(of_norm + ".bias"));
    }
    const Tensor<float> weight = load(name + "semantic.weight"), bias = load(name + "semantic.bias");
    *std::copy_n(weight.data(), config_.dim, out.semantic.data()) = bias.data()[0];
    return MaskDecoder(std::move(out), float32_);
  }

  // the part for points

  LayerNorm norm(const std::string& name, float eps) const {
    return {load(name + ".weight").flat(), load(name + ".bias").flat(), eps, kernels_};
  }
  TransposedConvolution transposed(const std::string& name) const {
    return {load(name + ".weight").view(), load(name + ".bias").flat(), float32_};
  }
  /// proj_in, layers.0, ..., proj_out.
  Perceptron deep_perceptron(const std::string& name, std::size_t depth) const {
    std::vector<Linear> layers;
    layers.push_back(linear(name + ".proj_in", float32_));
    for (std::size_t i = 0; i + 2 < depth; ++i)
      layers.push_back(linear(name + ".layers." + std::to_string(i), float32_));
    layers.push_back(linear(name + ".proj_out", float32_));
    return Perceptron(std::move(layers));
  }
  /// A level whose convolution ends with a projection of its own.
  NeckLevel skip_level(const std::string& number, bool twice) const {
    const std::string name = "clicks.neck." + number;
    const std::string last = twice ? ".up.1" : ".up.0", skip = "clicks.skip" + number;
    const ComposedKernel grow = compose(load(name + last + ".weight"), load(name + last + ".bias"),
                                        load(name + ".proj1.weight"), load(name + ".proj1.bias"));
    const ComposedKernel smooth = compose_3x3(load(name + ".proj2.weight"), load(name + ".proj2.bias"),
                                              load(skip + ".weight"), load(skip + ".bias"));
    NeckLevel out{.smooth = Convolution(smooth.weight.view(), smooth.bias.flat(), 1, kernels_, products_)};
    out.grow.emplace(grow.weight.view(), grow.bias.flat(), products_);
    if (twice)
      out.first.emplace(load(name + ".up.0.weight").view(), load(name + ".up.0.bias").flat(), products_);
    return out;
  }
  Neck click_neck() const {
    NeckLevel coarse{.smooth = convolution("clicks.neck.2.proj2")};
    coarse.project.emplace(linear("clicks.neck.2.proj1", products_));
    return {skip_level("0", true), skip_level("1", false), std::move(coarse), arithmetic_};
  }
  TwoWayLayer two_way_layer(const std::string& name) const {
    const std::size_t heads = config_.clicks->layers.num_heads;
    const auto attend = [&](const std::string& part) {
      return attention(name + part, heads, float32_, float32_);
    };
    return {.self = attend(".self_attn"),
            .token_to_image = attend(".cross_attn_token_to_image"),
            .image_to_token = attend(".cross_attn_image_to_token"),
            .mlp = {.fc1 = linear(name + ".mlp.proj_in", float32_),
                    .fc2 = linear(name + ".mlp.proj_out", float32_)},
            .norm1 = norm(name + ".layer_norm1"),
            .norm2 = norm(name + ".layer_norm2"),
            .norm3 = norm(name + ".layer_norm3"),
            .norm4 = norm(name + ".layer_norm4")};
  }
  /// The learned tokens in their order.
  Tensor<float> first_tokens() const {
    const Tensor<float> masks = load("clicks.mask_tokens");
    Tensor<float> out(Shape{2 + masks.dim(0), config_.dim});
    std::ranges::copy(load("clicks.object_token").flat(), out.view().row(0));
    std::ranges::copy(load("clicks.iou_token").flat(), out.view().row(1));
    std::ranges::copy(masks.flat(), out.view().row(2));
    return out;
  }

 public:
  ClickDecoder build_clicks() const {
    constexpr float kMapEps = 1e-6f;  // of the norm of channels of maps, which no configuration changes
    const ClickConfig& c = *config_.clicks;
    const std::string name = "clicks.";
    ClickLayers out{.neck = click_neck(),
                    .no_memory = load(name + "no_memory"),
                    .fourier = load(name + "fourier"),
                    .points = load(name + "points"),
                    .no_point = load(name + "no_point"),
                    .no_mask = load(name + "no_mask"),
                    .mask = {.conv1 = linear(name + "mask.conv1", float32_),
                             .conv2 = linear(name + "mask.conv2", float32_),
                             .conv3 = linear(name + "mask.conv3", float32_),
                             .norm1 = norm(name + "mask.layer_norm1", c.mask_norm_eps),
                             .norm2 = norm(name + "mask.layer_norm2", c.mask_norm_eps)},
                    .first_tokens = first_tokens(),
                    .layers = {},
                    .final_attention = attention(name + "two_way.final_attn_token_to_image",
                                                 c.layers.num_heads, float32_, float32_),
                    .final_norm = norm(name + "two_way.layer_norm_final_attn"),
                    .up1 = transposed(name + "up1"),
                    .up2 = transposed(name + "up2"),
                    .up_norm = norm(name + "up_norm", kMapEps),
                    .hyper = {},
                    .iou = deep_perceptron(name + "iou", c.iou_depth),
                    .object = deep_perceptron(name + "object", 3)};
    for (std::size_t i = 0; i < c.layers.depth; ++i)
      out.layers.push_back(two_way_layer(name + "two_way.layers." + std::to_string(i)));
    for (std::size_t i = 0; i < c.num_masks + 1; ++i)
      out.hyper.push_back(deep_perceptron(name + "hyper." + std::to_string(i), 3));
    return {c, config_.grid, config_.image_size, std::move(out), arithmetic_, float32_};
  }

 private:
  const PromptConfig& config_;
  const PromptWeights& weights_;
  const kernels::KernelTable& kernels_;
  const kernels::Arithmetic& arithmetic_;
  const kernels::LinearKernels &products_, &float32_;
};

}  // namespace

DetectorParts build_detector(const PromptConfig& config, const PromptWeights& weights,
                             const kernels::KernelTable& kernels, Precision precision) {
  return DetectorBuilder(config, weights, kernels, precision).build();
}

ClickDecoder build_click_decoder(const PromptConfig& config, const PromptWeights& weights,
                                 const kernels::KernelTable& kernels, Precision precision) {
  return DetectorBuilder(config, weights, kernels, precision).build_clicks();
}

}  // namespace vit::internal
