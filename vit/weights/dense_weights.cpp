#include "vit/weights/dense_weights.h"

#include "vit/base/check.h"

namespace vit::internal {
namespace {

struct HeadWalker {
  DenseWeights& weights;
  const VisitDenseTensor& visit;
  std::string prefix;

  HeadWalker in(const std::string& part) const { return {weights, visit, prefix + part + "."}; }
  void tensor(const std::string& name, const Shape& shape) const {
    visit(prefix + name, shape, weights.add(prefix + name));
  }
  void convolution(const std::string& name, std::size_t out, std::size_t in, std::size_t edge,
                   bool bias = true) const {
    tensor(name + ".weight", {out, in, edge, edge});
    if (bias) tensor(name + ".bias", {out});
  }
  void linear(const std::string& name, std::size_t out, std::size_t in) const {
    tensor(name + ".weight", {out, in});
    tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, std::size_t channels) const {
    tensor(name + ".weight", {channels});
    tensor(name + ".bias", {channels});
  }
  void transposed(const std::string& name, std::size_t channels, std::size_t edge) const {
    tensor(name + ".weight", {channels, channels, edge, edge});
    tensor(name + ".bias", {channels});
  }
  void batch_norm(const std::string& name, std::size_t channels) const {
    for (const char* const part : {".weight", ".bias", ".running_mean", ".running_var"})
      tensor(name + part, {channels});
  }
  void unit(const std::string& name, const DptConfig& c) const {
    for (const char* const number : {"1", "2"}) {
      convolution(name + ".conv" + number, c.features, c.features, 3, c.residual_bias);
      if (c.residual_batch_norm) batch_norm(name + ".norm" + number, c.features);
    }
  }
};

void visit_layers(const DptConfig& c, const DenseBranch& branch, std::size_t width, const HeadWalker& walk) {
  const std::size_t count = c.channels.size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::string number = std::to_string(k);
    if (c.readout == ClassReadout::projected) {
      walk.tensor("readout." + number + ".weight", {width, 2 * width});
      walk.tensor("readout." + number + ".bias", {width});
    }
    walk.convolution("project." + number, c.channels[k], width, 1);
    if (k == 0) walk.transposed("resize." + number, c.channels[k], 4);
    if (k == 1) walk.transposed("resize." + number, c.channels[k], 2);
    if (k == 3) walk.convolution("resize." + number, c.channels[k], c.channels[k], 3);
    walk.convolution("neck." + number, c.features, c.channels[k], 3, /*bias=*/false);
  }
  for (std::size_t j = 0; j < count; ++j) {
    const HeadWalker fusion = walk.in("fusion." + std::to_string(j));
    if (j != 0) fusion.unit("lateral", c);
    fusion.unit("unit", c);
    fusion.convolution("project", c.features, c.features, 1);
  }
  std::size_t channels = c.features;
  if (c.extra_channels != 0) {
    walk.convolution("extra", c.extra_channels, channels, 3, c.extra_bias);
    channels = c.extra_channels;
  }
  if (c.layers == HeadLayersKind::convolutions) {
    walk.convolution("narrow", channels / 2, channels, 3);
    channels = channels / 2;
  }
  if (c.layers == HeadLayersKind::classes) {
    walk.convolution("narrow", channels, channels, 3, /*bias=*/false);
    walk.batch_norm("narrow_norm", channels);
  }
  for (std::size_t o = 0; o < branch.outputs.size(); ++o) {
    const HeadWalker output = walk.in("output." + std::to_string(o));
    if (c.layers == HeadLayersKind::convolutions) output.convolution("hidden", c.hidden, channels, 3);
    output.convolution("last", branch.outputs[o].channels,
                       c.layers == HeadLayersKind::convolutions ? c.hidden : channels, 1);
  }
}

void visit_layers(const LinearMapConfig& c, const DenseBranch& branch, std::size_t width,
                  const HeadWalker& walk) {
  const std::size_t of_tap = c.readout == ClassReadout::concatenated ? 2 * width : width;
  const std::size_t channels = of_tap * branch.taps.size();
  if (c.batch_norm) walk.batch_norm("norm_map", channels);
  walk.convolution("output.0.last", branch.outputs.front().channels, channels, 1);
}

void visit_layers(const MaskConfig& c, const DenseBranch& branch, std::size_t width, const HeadWalker& walk) {
  const auto linear = [&](const std::string& name, std::size_t out) {
    walk.tensor(name + ".weight", {out, width});
    walk.tensor(name + ".bias", {out});
  };
  linear("class", branch.outputs.back().channels);
  for (const char* const layer : {"mask.1", "mask.2", "mask.3"}) linear(layer, width);
  for (std::size_t i = 0; i < c.doublings; ++i) {
    const HeadWalker step = walk.in("double." + std::to_string(i));
    step.transposed("up", width, 2);
    step.tensor("depthwise.weight", {width, 1, 3, 3});
    step.tensor("norm.weight", {width});
    step.tensor("norm.bias", {width});
  }
}

void visit_layers(const HeatmapConfig& c, const DenseBranch& branch, std::size_t width,
                  const HeadWalker& walk) {
  const std::size_t keypoints = branch.outputs.front().channels;
  if (c.decoder == HeatmapDecoder::simple) return walk.convolution("last", keypoints, width, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    walk.tensor("doubling." + number + ".weight", {i == 0 ? width : c.channels, c.channels, 4, 4});
    walk.batch_norm("doubling_norm." + number, c.channels);
  }
  walk.convolution("last", keypoints, c.channels, 1);
}

void visit_layers(const BoxConfig& c, const DenseBranch& branch, std::size_t width, const HeadWalker& walk) {
  if (c.times_class_token) {
    walk.tensor("times_norm.weight", {width});
    walk.tensor("times_norm.bias", {width});
  }
  for (const MapOutput& output : branch.outputs) {
    if (output.meaning == Output::box_vectors) {
      walk.linear("vectors", output.channels, width);
    } else if (output.meaning == Output::box_terms) {
      walk.linear("shift", 1, width);
      walk.linear("scale", 1, width);
    } else {
      for (std::size_t layer = 0; layer < 3; ++layer)
        walk.linear(perceptron_name(output.meaning) + std::to_string(layer),
                    layer == 2 ? output.channels : width, width);
    }
  }
}

/// A layer of the decoder of queries.
void visit_decoder_layer(const QueryBoxConfig& c, const HeadWalker& walk) {
  const std::size_t width = c.width, samples = c.sampling_heads * c.levels.size() * c.points;
  for (const char* const name : {"q", "k", "v", "o"}) {
    walk.tensor(std::string(name) + ".weight", {width, width});
    if (c.attention_bias) walk.tensor(std::string(name) + ".bias", {width});
  }
  walk.norm("norm1", width);
  walk.linear("offsets", 2 * samples, width);
  walk.linear("weights", samples, width);
  walk.linear("values", width, width);
  walk.linear("sampled", width, width);
  walk.norm("norm2", width);
  walk.linear("fc1", c.mlp_dim, width);
  walk.linear("fc2", width, c.mlp_dim);
  walk.norm("norm3", width);
}

/// The map of a level, of taps with `width` channels.
void visit_level(const QueryBoxConfig& c, MapScale scale, std::size_t num_taps, std::size_t width,
                 const HeadWalker& walk) {
  const auto normed = [&](const std::string& name, std::size_t out, std::size_t in, std::size_t edge) {
    walk.convolution(name, out, in, edge, /*bias=*/false);
    if (c.batch_norm) return walk.batch_norm(name + "_norm", out);
    walk.norm(name + "_norm", out);
  };
  std::size_t of_tap = width;
  for (std::size_t k = 0; k < num_taps; ++k) {
    const std::string number = std::to_string(k);
    if (scale == MapScale::half) {
      walk.convolution("reduce." + number, width, width, 3, /*bias=*/false);
      walk.batch_norm("reduce_norm." + number, width);
    }
    if (scale != MapScale::twice) continue;
    const bool narrows = narrows_taps(width);
    const std::size_t in = narrows ? width / 2 : width;
    if (narrows) {
      walk.convolution("narrow." + number, in, width, 1, /*bias=*/false);
      walk.batch_norm("narrow_norm." + number, in);
    }
    of_tap = in / 2;
    walk.tensor("enlarge." + number + ".weight", {in, of_tap, 2, 2});
    walk.tensor("enlarge." + number + ".bias", {of_tap});
  }
  normed("join", 2 * c.inner, of_tap * num_taps, 1);
  for (std::size_t pair = 0; pair < c.pairs; ++pair) {
    const std::string name = "pair." + std::to_string(pair) + ".conv";
    for (const char* const number : {"1", "2"}) normed(name + number, c.inner, c.inner, 3);
  }
  normed("merge", c.width, (2 + c.pairs) * c.inner, 1);
  walk.norm("norm", c.width);
}

void visit_layers(const QueryBoxConfig& c, const DenseBranch& branch, std::size_t width,
                  const HeadWalker& walk) {
  const std::size_t classes = branch.outputs[1].channels;
  const auto perceptron = [&](const std::string& name) {
    for (const char* const layer : {"0", "1", "2"})
      walk.linear(name + "." + layer, layer[0] == '2' ? 4 : c.width, c.width);
  };
  for (std::size_t l = 0; l < c.levels.size(); ++l)
    visit_level(c, c.levels[l], branch.taps.size(), width, walk.in("level." + std::to_string(l)));
  walk.tensor("queries.weight", {c.stored_groups * c.queries, c.width});
  walk.tensor("references.weight", {c.stored_groups * c.queries, 4});
  walk.linear("propose", c.width, c.width);
  walk.norm("propose_norm", c.width);
  walk.linear("propose_classes", classes, c.width);
  perceptron("propose_boxes");
  walk.linear("position.0", c.width, 2 * c.width);
  walk.linear("position.1", c.width, c.width);
  for (std::size_t i = 0; i < c.layers; ++i) visit_decoder_layer(c, walk.in("layer." + std::to_string(i)));
  walk.norm("output_norm", c.width);
  walk.linear("classes", classes, c.width);
  perceptron("boxes");
}

}  // namespace

std::string perceptron_name(Output meaning) {
  return meaning == Output::boxes ? "boxes." : meaning == Output::objectness ? "objectness." : "classes.";
}

const WeightTensor& DenseWeights::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  VIT_CHECK(found != tensors_.end(), "DenseWeights", "a dense head has no tensor ", name);
  return found->second;
}

void for_each_tensor(const DenseConfig& config, std::size_t embed_dim, DenseWeights& weights,
                     const VisitDenseTensor& visit) {
  const HeadWalker all{weights, visit, ""};
  for (const DenseBranch& branch : config.branches) {
    const HeadWalker walk = branch.name.empty() ? all : all.in(branch.name);
    if (branch.tap_norm) {
      walk.tensor("norm.weight", {embed_dim});
      walk.tensor("norm.bias", {embed_dim});
    }
    std::visit([&](const auto& layers) { visit_layers(layers, branch, embed_dim, walk); }, branch.layers);
  }
}

}  // namespace vit::internal
