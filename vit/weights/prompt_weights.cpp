// The list of the tensors of a detector of prompts.
#include "vit/weights/prompt_weights.h"

namespace vit::internal {
namespace {

struct PromptWalker {
  PromptWeights& weights;
  const VisitDenseTensor& visit;
  std::string prefix;

  PromptWalker in(const std::string& part) const { return {weights, visit, prefix + part + "."}; }
  PromptWalker in(const std::string& part, std::size_t index) const {
    return in(part + "." + std::to_string(index));
  }
  void tensor(const std::string& name, const Shape& shape) const {
    visit(prefix + name, shape, weights.add(prefix + name));
  }
  void linear(const std::string& name, std::size_t out, std::size_t in) const {
    tensor(name + ".weight", {out, in});
    tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, std::size_t channels) const {
    tensor(name + ".weight", {channels});
    tensor(name + ".bias", {channels});
  }
  void convolution(const std::string& name, std::size_t out, std::size_t in, std::size_t edge) const {
    tensor(name + ".weight", {out, in, edge, edge});
    tensor(name + ".bias", {out});
  }
  void transposed(const std::string& name, std::size_t in, std::size_t out) const {
    tensor(name + ".weight", {in, out, 2, 2});
    tensor(name + ".bias", {out});
  }
  void attention(const std::string& name, std::size_t dim, std::size_t inner) const {
    for (const char* const part : {".q_proj", ".k_proj", ".v_proj"}) linear(name + part, inner, dim);
    linear(name + ".o_proj", dim, inner);
  }
  void mlp(const std::string& name, std::size_t dim, std::size_t hidden) const {
    linear(name + ".fc1", hidden, dim);
    linear(name + ".fc2", dim, hidden);
  }
  /// Layers 1, 2, ... of these widths.
  void perceptron(const std::string& name, std::initializer_list<std::size_t> widths) const {
    std::size_t number = 1;
    for (auto width = widths.begin(); width + 1 != widths.end(); ++width, ++number)
      linear(name + std::to_string(number), *(width + 1), *width);
  }
};

void visit_neck(const PromptConfig& c, const PromptWalker& walk) {
  const std::size_t width = c.backbone_dim;
  const std::size_t channels[] = {width / 4, width / 2, width};  // that projections read
  for (std::size_t level = 0; level < 3; ++level) {
    const PromptWalker map = walk.in("neck", level);
    if (level < 2) map.transposed("up.0", width, width / 2);
    if (level == 0) map.transposed("up.1", width / 2, width / 4);
    map.convolution("proj1", c.dim, channels[level], 1);
    map.convolution("proj2", c.dim, c.dim, 3);
  }
}

void visit_geometry(const PromptConfig& c, const PromptWalker& walk) {
  walk.linear("direct", c.dim, 4);
  walk.convolution("pool", c.dim, c.dim, c.roi_bins);
  walk.linear("position", c.dim, c.dim + 2);
  walk.tensor("labels", {2, c.dim});
  walk.tensor("class_token", {c.dim});
  walk.linear("final", c.dim, c.dim);
  for (const char* const name : {"prompt_norm", "vision_norm", "output_norm"}) walk.norm(name, c.dim);
}

/// Layers of attention among rows, attention to others, and an MLP, each after its norm.
void visit_pre_norm_layers(const PromptLayersConfig& layers, std::size_t dim, const PromptWalker& walk) {
  for (std::size_t i = 0; i < layers.depth; ++i) {
    const PromptWalker layer = walk.in("layers", i);
    layer.attention("self_attn", dim, dim);
    layer.attention("cross_attn", dim, dim);
    layer.mlp("mlp", dim, layers.mlp_dim);
    for (const char* const name : {"layer_norm1", "layer_norm2", "layer_norm3"}) layer.norm(name, dim);
  }
}

void visit_decoder(const PromptConfig& c, const PromptWalker& walk) {
  walk.tensor("queries", {c.num_queries, c.dim});
  walk.tensor("points", {c.num_queries, 4});
  walk.tensor("presence_token", {c.dim});
  for (std::size_t i = 0; i < c.decoder.depth; ++i) {
    const PromptWalker layer = walk.in("layers", i);
    for (const char* const name : {"self_attn", "text_cross_attn", "vision_cross_attn"}) {
      layer.attention(name, c.dim, c.dim);
      layer.norm(std::string(name) + "_layer_norm", c.dim);
    }
    layer.mlp("mlp", c.dim, c.decoder.mlp_dim);
    layer.norm("mlp_layer_norm", c.dim);
  }
  walk.norm("output_norm", c.dim);
  walk.norm("presence_norm", c.dim);
  walk.perceptron("boxes.", {c.dim, c.dim, c.dim, 4});
  walk.perceptron("presence.", {c.dim, c.dim, c.dim, 1});
  walk.perceptron("position.", {2 * c.dim, c.dim, c.dim});
  walk.perceptron("bias_x.", {2, c.dim, c.decoder.num_heads});
  walk.perceptron("bias_y.", {2, c.dim, c.decoder.num_heads});
}

void visit_masks(const PromptConfig& c, const PromptWalker& walk) {
  walk.attention("attention", c.dim, c.dim);
  walk.norm("attention_norm", c.dim);
  for (std::size_t i = 0; i < 2; ++i) {
    walk.convolution("refine." + std::to_string(i), c.dim, c.dim, 3);
    walk.norm("refine_norm." + std::to_string(i), c.dim);
  }
  walk.perceptron("embed.", {c.dim, c.dim, c.dim, c.dim});
  walk.convolution("instance", c.dim, c.dim, 1);
  walk.convolution("semantic", 1, c.dim, 1);
}

void visit_mask_prompt(const PromptConfig& c, const PromptWalker& walk) {
  const std::size_t channels = c.clicks->mask_channels;
  walk.convolution("conv1", channels / 4, 1, 2);
  walk.norm("layer_norm1", channels / 4);
  walk.convolution("conv2", channels, channels / 4, 2);
  walk.norm("layer_norm2", channels);
  walk.convolution("conv3", c.dim, channels, 1);
}

void visit_two_way(const PromptConfig& c, const PromptWalker& walk) {
  const ClickConfig& clicks = *c.clicks;
  const std::size_t inner = c.dim / clicks.downsample;
  for (std::size_t i = 0; i < clicks.layers.depth; ++i) {
    const PromptWalker layer = walk.in("layers", i);
    layer.attention("self_attn", c.dim, c.dim);
    layer.attention("cross_attn_token_to_image", c.dim, inner);
    layer.attention("cross_attn_image_to_token", c.dim, inner);
    for (const char* const name : {"layer_norm1", "layer_norm2", "layer_norm3", "layer_norm4"})
      layer.norm(name, c.dim);
    layer.linear("mlp.proj_in", clicks.layers.mlp_dim, c.dim);
    layer.linear("mlp.proj_out", c.dim, clicks.layers.mlp_dim);
  }
  walk.attention("final_attn_token_to_image", c.dim, inner);
  walk.norm("layer_norm_final_attn", c.dim);
}

void visit_clicks(const PromptConfig& c, const PromptWalker& walk) {
  const ClickConfig& clicks = *c.clicks;
  const std::size_t dim = c.dim, masks = clicks.num_masks + 1;
  visit_neck(c, walk);
  walk.convolution("skip0", dim / 8, dim, 1);
  walk.convolution("skip1", dim / 4, dim, 1);
  walk.tensor("no_memory", {dim});
  walk.tensor("fourier", {2, dim / 2});
  walk.tensor("points", {4, dim});
  walk.tensor("no_point", {dim});
  walk.tensor("no_mask", {dim});
  visit_mask_prompt(c, walk.in("mask"));
  walk.tensor("object_token", {dim});
  walk.tensor("iou_token", {dim});
  walk.tensor("mask_tokens", {masks, dim});
  visit_two_way(c, walk.in("two_way"));
  walk.transposed("up1", dim, dim / 4);
  walk.norm("up_norm", dim / 4);
  walk.transposed("up2", dim / 4, dim / 8);
  const auto perceptron = [&](const std::string& name, std::size_t hidden, std::size_t depth,
                              std::size_t out) {
    walk.linear(name + ".proj_in", hidden, dim);
    for (std::size_t i = 0; i + 2 < depth; ++i)
      walk.linear(name + ".layers." + std::to_string(i), hidden, hidden);
    walk.linear(name + ".proj_out", out, hidden);
  };
  for (std::size_t i = 0; i < masks; ++i) perceptron("hyper." + std::to_string(i), dim, 3, dim / 8);
  perceptron("iou", clicks.iou_dim, clicks.iou_depth, masks);
  perceptron("object", dim, 3, 1);
}

void visit_detector(const PromptConfig& c, const PromptWalker& walk) {
  visit_neck(c, walk);
  visit_geometry(c, walk.in("geometry"));
  visit_pre_norm_layers(c.geometry, c.dim, walk.in("geometry"));
  visit_pre_norm_layers(c.fusion, c.dim, walk.in("fusion"));
  visit_decoder(c, walk.in("decoder"));
  walk.perceptron("scoring.mlp.", {c.dim, c.decoder.mlp_dim, c.dim});
  walk.norm("scoring.norm", c.dim);
  walk.linear("scoring.prompt", c.dim, c.dim);
  walk.linear("scoring.query", c.dim, c.dim);
  visit_masks(c, walk.in("masks"));
}

}  // namespace

void for_each_tensor(const PromptConfig& c, PromptWeights& weights, const VisitDenseTensor& visit) {
  const PromptWalker walk{weights, visit, ""};
  if (c.has_detector) visit_detector(c, walk);
  if (c.clicks) visit_clicks(c, walk.in("clicks"));
}

}  // namespace vit::internal
