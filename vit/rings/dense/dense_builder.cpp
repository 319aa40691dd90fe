// The layers of a dense head, built from its weights, tensor by tensor; batch norms are folded into the
// convolutions next to them.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/rings/dense/batch_norm.h"
#include "vit/rings/dense/box_head.h"
#include "vit/rings/dense/dense_head.h"
#include "vit/rings/dense/dpt_head.h"
#include "vit/rings/dense/heatmap_head.h"
#include "vit/rings/dense/linear_map_head.h"
#include "vit/rings/dense/mask_head.h"
#include "vit/rings/dense/query_box_layers.h"

namespace vit::internal {
namespace {

/// A weight (out, ...) and its bias, which may be empty.
struct Product {
  Tensor<float> weight;
  Tensor<float> bias;
};

class HeadBuilder {
 public:
  HeadBuilder(const DenseWeights& weights, const ModelConfig& backbone, const kernels::KernelTable& kernels,
              Precision precision)
      : weights_(weights),
        backbone_(backbone),
        kernels_(kernels),
        products_(products_of(kernels, precision)) {}

  std::unique_ptr<const BranchHead> build(const DenseBranch& branch) {
    prefix_ = branch.name.empty() ? "" : branch.name + ".";
    return std::visit([&](const auto& layers) { return head(layers, branch); }, branch.layers);
  }

 private:
  std::unique_ptr<const BranchHead> head(const DptConfig& c, const DenseBranch& branch) const {
    return std::make_unique<DptHead>(c, dpt_layers(c, branch), backbone_.patch.size,
                                     backbone_.num_prefix_tokens(), kernels_);
  }
  std::unique_ptr<const BranchHead> head(const LinearMapConfig& c, const DenseBranch& branch) const {
    return std::make_unique<LinearMapHead>(c, linear_layers(c, branch), backbone_.num_prefix_tokens(),
                                           kernels_);
  }
  std::unique_ptr<const BranchHead> head(const MaskConfig& c, const DenseBranch& branch) const {
    return std::make_unique<MaskHead>(c, mask_layers(c, branch), backbone_.num_prefix_tokens(), kernels_);
  }
  std::unique_ptr<const BranchHead> head(const HeatmapConfig& c, const DenseBranch& branch) const {
    return std::make_unique<HeatmapHead>(c, heatmap_layers(c, branch), backbone_.num_prefix_tokens(),
                                         kernels_);
  }
  std::unique_ptr<const BranchHead> head(const BoxConfig& c, const DenseBranch& branch) const {
    return std::make_unique<BoxHead>(branch, box_layers(c, branch), backbone_.num_prefix_tokens(),
                                     backbone_.tokens.num_registers);
  }

  std::unique_ptr<const BranchHead> head(const QueryBoxConfig& c, const DenseBranch& branch) const {
    QueryBoxLayers layers = build_query_boxes(
        c, branch.taps.size(), backbone_.embed_dim, [this](const std::string& name) { return load(name); },
        kernels_, products_);
    layers.norm = tap_norm(branch);
    return std::make_unique<QueryBoxHead>(c, std::move(layers), backbone_.num_prefix_tokens(), kernels_);
  }

  /// Of pixels, before the last layer of a result: as in the blocks, but for int8.
  static const kernels::LinearKernels& products_of(const kernels::KernelTable& kernels, Precision precision) {
    const kernels::Arithmetic& arithmetic = arithmetic_of(kernels, precision);
    return precision == Precision::int8 ? *arithmetic.fine : *arithmetic.linear;
  }

  Tensor<float> load_whole(const std::string& name) const {
    return weights_.has(name) ? weights_.at(name).load() : Tensor<float>();
  }
  Tensor<float> load(const std::string& name) const { return load_whole(prefix_ + name); }
  Product product(const std::string& name) const { return {load(name + ".weight"), load(name + ".bias")}; }

  ChannelMap batch_norm(const std::string& name) const {
    constexpr double kEps = 1e-5;  // of torch's BatchNorm2d, which no configuration changes
    return load_batch_norm([this](const std::string& whole) { return load_whole(whole); }, prefix_ + name,
                           kEps);
  }

  /// `product` followed by `map`.
  static Product followed_by(Product product, const ChannelMap& map) {
    const std::size_t out = product.weight.dim(0), in = product.weight.num_elements() / out;
    Tensor<float> weight(product.weight.shape()), bias(Shape{out});
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < in; ++i)
        weight.data()[o * in + i] = static_cast<float>(product.weight.data()[o * in + i] * map.scale[o]);
      const double before = product.bias.empty() ? 0.0 : product.bias.data()[o];
      bias.data()[o] = static_cast<float>(before * map.scale[o] + map.shift[o]);
    }
    return {std::move(weight), std::move(bias)};
  }

  Convolution convolution(const Product& product, std::size_t stride = 1) const {
    return {product.weight, product.bias.flat(), stride, kernels_, products_};
  }
  Convolution convolution(const std::string& name, std::size_t stride = 1) const {
    return convolution(product(name), stride);
  }
  /// Its sums are the result, or what becomes of them: float32 costs little.
  Convolution last_convolution(const std::string& name) const {
    const Product last = product(name);
    return {last.weight, last.bias.flat(), 1, kernels_};
  }

  std::optional<LayerNorm> tap_norm(const DenseBranch& branch) const {
    if (!branch.tap_norm) return std::nullopt;
    return LayerNorm(load("norm.weight").flat(), load("norm.bias").flat(), branch.tap_norm_eps, kernels_);
  }

  ResidualUnit unit(const std::string& name, const DptConfig& c) const {
    const auto one = [&](const std::string& number) {
      Product conv = product(name + ".conv" + number);
      if (c.residual_batch_norm) conv = followed_by(std::move(conv), batch_norm(name + ".norm" + number));
      return convolution(conv);
    };
    return {one("1"), one("2")};
  }

  DptTap tap(const DptConfig& c, std::size_t index) const {
    const std::string number = std::to_string(index);
    DptTap out{.projection = convolution("project." + number), .neck = convolution("neck." + number)};
    if (c.readout == ClassReadout::projected) {
      const std::size_t width = backbone_.embed_dim;
      const Tensor<float> weight = load("readout." + number + ".weight");  // (C, patch and class)
      Tensor<float> patch(Shape{width, width, 1, 1});
      out.class_readout = Tensor<float>(Shape{width, width});
      for (std::size_t o = 0; o < width; ++o) {
        const float* const row = weight.data() + o * 2 * width;
        std::copy_n(row, width, patch.data() + o * width);
        std::copy_n(row + width, width, out.class_readout.data() + o * width);
      }
      out.readout.emplace(patch.view(), std::span<const float>(), 1, kernels_, products_);
      out.class_bias = load("readout." + number + ".bias");
    }
    if (index < 2) {
      const Product resize = product("resize." + number);
      out.enlarge.emplace(resize.weight.view(), resize.bias.flat(), products_);
    }
    if (index == 3) out.reduce.emplace(convolution("resize." + number, 2));
    return out;
  }

  DptLayers dpt_layers(const DptConfig& c, const DenseBranch& branch) const {
    DptLayers out{.norm = tap_norm(branch)};
    for (std::size_t k = 0; k < c.channels.size(); ++k) out.taps.push_back(tap(c, k));
    for (std::size_t j = 0; j < c.channels.size(); ++j) {
      const std::string fusion = "fusion." + std::to_string(j);
      std::optional<ResidualUnit> lateral;
      if (j != 0) lateral.emplace(unit(fusion + ".lateral", c));
      out.fusions.push_back(
          {std::move(lateral), unit(fusion + ".unit", c), convolution(fusion + ".project")});
    }
    if (c.extra_channels != 0) out.extra.emplace(convolution("extra"));
    if (c.layers == HeadLayersKind::convolutions) out.narrow.emplace(convolution("narrow"));
    if (c.layers == HeadLayersKind::classes)
      out.narrow.emplace(convolution(followed_by(product("narrow"), batch_norm("narrow_norm"))));
    for (std::size_t o = 0; o < branch.outputs.size(); ++o) {
      const std::string output = "output." + std::to_string(o);
      std::optional<Convolution> hidden;
      if (c.layers == HeadLayersKind::convolutions) hidden.emplace(convolution(output + ".hidden"));
      out.outputs.push_back(
          {std::move(hidden), last_convolution(output + ".last"), MapFinisher(branch.outputs[o])});
    }
    return out;
  }

  /// The columns of the product are the concatenated columns of the taps, patch and class token each.
  LinearMapLayers linear_layers(const LinearMapConfig& c, const DenseBranch& branch) const {
    const std::size_t width = backbone_.embed_dim, outputs = branch.outputs.front().channels;
    const bool with_class = c.readout == ClassReadout::concatenated;
    const std::size_t of_tap = with_class ? 2 * width : width, columns = of_tap * branch.taps.size();
    Product last = product("output.0.last");
    if (c.batch_norm) last = preceded_by(batch_norm("norm_map"), std::move(last));
    LinearMapLayers out{.norm = tap_norm(branch),
                        .bias = std::move(last.bias),
                        .finish = MapFinisher(branch.outputs.front())};
    for (std::size_t k = 0; k < branch.taps.size(); ++k) {
      Tensor<float> patch(Shape{outputs, width, 1, 1}), token;
      if (with_class) token = Tensor<float>(Shape{outputs, width});
      for (std::size_t o = 0; o < outputs; ++o) {
        const float* const row = last.weight.data() + o * columns + k * of_tap;
        std::copy_n(row, width, patch.data() + o * width);
        if (with_class) std::copy_n(row + width, width, token.data() + o * width);
      }
      out.taps.push_back({Convolution(patch.view(), {}, 1, kernels_), std::move(token)});
    }
    return out;
  }

  MaskLayers mask_layers(const MaskConfig& c, const DenseBranch& branch) const {
    MaskLayers out{
        .norm = *tap_norm(branch),
        .classes = last_linear(product("class")),
        .mlp = {linear(product("mask.1")), linear(product("mask.2")), last_linear(product("mask.3"))}};
    for (std::size_t i = 0; i < c.doublings; ++i) {
      const std::string step = "double." + std::to_string(i);
      const Product up = product(step + ".up");
      out.doublings.push_back({TransposedConvolution(up.weight.view(), up.bias.flat(), products_),
                               DepthwiseConvolution(load(step + ".depthwise.weight").view()),
                               LayerNorm(load(step + ".norm.weight").flat(), load(step + ".norm.bias").flat(),
                                         c.map_norm_eps, kernels_)});
    }
    return out;
  }

  /// A transposed kernel (I, O, 4, 4) and the batch norm after it, as products (4 4 O, I) of single pixels.
  DoublingConvolution doubling(const std::string& number) const {
    const Tensor<float> weight = load("doubling." + number + ".weight");
    const ChannelMap norm = batch_norm("doubling_norm." + number);
    const std::size_t in = weight.dim(0), out = weight.dim(1), places = 16;
    Tensor<float> rows(Shape{places * out, in, 1, 1}), bias(Shape{out});
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t o = 0; o < out; ++o) {
        const float* const kernel = weight.data() + (i * out + o) * places;
        for (std::size_t place = 0; place < places; ++place)
          rows.data()[(place * out + o) * in + i] = static_cast<float>(kernel[place] * norm.scale[o]);
      }
    }
    for (std::size_t o = 0; o < out; ++o) bias.data()[o] = static_cast<float>(norm.shift[o]);
    return {Convolution(rows.view(), {}, 1, kernels_, products_), std::move(bias)};
  }

  HeatmapLayers heatmap_layers(const HeatmapConfig& c, const DenseBranch& branch) const {
    HeatmapLayers out{.norm = tap_norm(branch), .last = last_convolution("last")};
    if (c.decoder == HeatmapDecoder::classic) {
      for (const char* const number : {"0", "1"}) out.doublings.push_back(doubling(number));
    }
    return out;
  }

  /// A product of rows (out, in) as a kernel of 1x1.
  Convolution linear(const Product& rows, const kernels::LinearKernels& products) const {
    const TensorView<const float> weight(rows.weight.data(),
                                         Shape{rows.weight.dim(0), rows.weight.dim(1), 1, 1});
    return {weight, rows.bias.flat(), 1, kernels_, products};
  }
  Convolution linear(const Product& rows) const { return linear(rows, products_); }
  Convolution last_linear(const Product& rows) const { return linear(rows, *kernels_.float32->linear); }

  /// `a` above `b`.
  static Product stacked(const Product& a, const Product& b) {
    const std::size_t rows = a.weight.dim(0) + b.weight.dim(0);
    Product out{Tensor<float>(Shape{rows, a.weight.dim(1)}), Tensor<float>(Shape{rows})};
    std::ranges::copy(b.weight.flat(), std::ranges::copy(a.weight.flat(), out.weight.data()).out);
    std::ranges::copy(b.bias.flat(), std::ranges::copy(a.bias.flat(), out.bias.data()).out);
    return out;
  }

  BoxLayers box_layers(const BoxConfig& c, const DenseBranch& branch) const {
    BoxLayers out{.norm = tap_norm(branch)};
    if (c.times_class_token)
      out.times_norm.emplace(load("times_norm.weight").flat(), load("times_norm.bias").flat(),
                             c.times_norm_eps, kernels_);
    for (const MapOutput& output : branch.outputs) {
      std::vector<Convolution>& layers = out.outputs.emplace_back();
      if (output.meaning == Output::box_vectors) {
        layers.push_back(last_linear(product("vectors")));
      } else if (output.meaning == Output::box_terms) {
        layers.push_back(last_linear(stacked(product("shift"), product("scale"))));
      } else {
        const std::string name = perceptron_name(output.meaning);
        for (const char* const layer : {"0", "1"}) layers.push_back(linear(product(name + layer)));
        layers.push_back(last_linear(product(name + "2")));
      }
    }
    return out;
  }

  /// `map` followed by `product`.
  static Product preceded_by(const ChannelMap& map, Product product) {
    const std::size_t out = product.weight.dim(0), in = product.weight.num_elements() / out;
    Tensor<float> weight(product.weight.shape()), bias(Shape{out});
    for (std::size_t o = 0; o < out; ++o) {
      double sum = product.bias.data()[o];
      for (std::size_t i = 0; i < in; ++i) {
        const double value = product.weight.data()[o * in + i];
        weight.data()[o * in + i] = static_cast<float>(value * map.scale[i]);
        sum += value * map.shift[i];
      }
      bias.data()[o] = static_cast<float>(sum);
    }
    return {std::move(weight), std::move(bias)};
  }

  const DenseWeights& weights_;
  const ModelConfig& backbone_;
  const kernels::KernelTable& kernels_;
  const kernels::LinearKernels& products_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<const MapHead> build_map_head(const DenseConfig& config, const DenseWeights& weights,
                                              const ModelConfig& backbone,
                                              const kernels::KernelTable& kernels, Precision precision) {
  HeadBuilder builder(weights, backbone, kernels, precision);
  std::vector<std::unique_ptr<const BranchHead>> branches;
  for (const DenseBranch& branch : config.branches) branches.push_back(builder.build(branch));
  return std::make_unique<const DenseHead>(config, std::move(branches));
}

}  // namespace vit::internal
