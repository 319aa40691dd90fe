#include "vit/rings/dense/query_box_layers.h"

#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/dense_weights.h"

namespace vit::internal {
namespace {

constexpr float kMapEps = 1e-6f;    // of the norm of a map, which no configuration changes
constexpr float kQueryEps = 1e-5f;  // of the norms of queries, likewise

class QueryBoxBuilder {
 public:
  QueryBoxBuilder(const QueryBoxConfig& config, const LoadDenseTensor& load,
                  const kernels::KernelTable& kernels, const kernels::LinearKernels& products)
      : c_(config), load_(load), kernels_(kernels), products_(products) {}

  QueryBoxLayers build(std::size_t num_taps, std::size_t tap_channels) const {
    QueryBoxLayers out{.queries = first_group("queries.weight"),
                       .references = first_group("references.weight"),
                       .propose = linear("propose"),
                       .propose_norm = norm("propose_norm", kQueryEps),
                       .propose_classes = linear("propose_classes"),
                       .propose_boxes = perceptron("propose_boxes"),
                       .position = {linear("position.0"), linear("position.1")},
                       .output_norm = norm("output_norm", kQueryEps),
                       .classes = linear("classes"),
                       .boxes = perceptron("boxes")};
    for (std::size_t l = 0; l < c_.levels.size(); ++l)
      out.maps.push_back(map(c_.levels[l], num_taps, tap_channels, "level." + std::to_string(l) + "."));
    for (std::size_t i = 0; i < c_.layers; ++i)
      out.layers.push_back(layer("layer." + std::to_string(i) + "."));
    return out;
  }

 private:
  Linear linear(const std::string& name) const {
    const Tensor<float> weight = load_(name + ".weight"), bias = load_(name + ".bias");
    return {weight, bias.flat(), *kernels_.float32->linear};
  }
  std::array<Linear, 3> perceptron(const std::string& name) const {
    return {linear(name + ".0"), linear(name + ".1"), linear(name + ".2")};
  }
  LayerNorm norm(const std::string& name, float eps) const {
    return LayerNorm(load_(name + ".weight").flat(), load_(name + ".bias").flat(), eps, kernels_);
  }

  /// The queries of the first of the stored groups.
  Tensor<float> first_group(const std::string& name) const {
    const Tensor<float> all = load_(name);
    Tensor<float> out(Shape{c_.queries, all.dim(1)});
    std::copy_n(all.data(), out.num_elements(), out.data());
    return out;
  }

  /// A convolution and the batch norm after it.
  NormedConvolution batch_normed(const std::string& name, const std::string& norm_name, Activation activation,
                                 std::size_t stride = 1) const {
    Tensor<float> weight = load_(name + ".weight");
    const ChannelMap map = load_batch_norm(load_, norm_name, double{c_.norm_eps});
    const std::size_t out = weight.dim(0), of_output = weight.num_elements() / out;
    Tensor<float> bias(Shape{out});
    for (std::size_t o = 0; o < out; ++o) {
      float* const row = weight.data() + o * of_output;
      for (std::size_t i = 0; i < of_output; ++i) row[i] = static_cast<float>(row[i] * map.scale[o]);
      bias.data()[o] = static_cast<float>(map.shift[o]);
    }
    return {.convolution = Convolution(weight.view(), bias.flat(), stride, kernels_, products_),
            .activation = activation};
  }

  /// A convolution of a map and the norm after it, whose name ends in "_norm".
  NormedConvolution normed(const std::string& name) const {
    if (c_.batch_norm) return batch_normed(name, name + "_norm", c_.activation);
    const Tensor<float> weight = load_(name + ".weight");
    return {.convolution = Convolution(weight.view(), {}, 1, kernels_, products_),
            .norm = norm(name + "_norm", c_.norm_eps),
            .activation = c_.activation};
  }

  SampledMap map(MapScale scale, std::size_t num_taps, std::size_t tap_channels,
                 const std::string& prefix) const {
    SampledMapLayers out{.join = normed(prefix + "join"),
                         .merge = normed(prefix + "merge"),
                         .norm = norm(prefix + "norm", kMapEps)};
    for (std::size_t k = 0; k < num_taps; ++k) {
      const std::string number = "." + std::to_string(k);
      TapResize& tap = out.taps.emplace_back();
      if (scale == MapScale::half)
        tap.reduce.emplace(
            batch_normed(prefix + "reduce" + number, prefix + "reduce_norm" + number, Activation::relu, 2));
      if (scale != MapScale::twice) continue;
      if (narrows_taps(tap_channels))
        tap.narrow.emplace(
            batch_normed(prefix + "narrow" + number, prefix + "narrow_norm" + number, Activation::relu));
      const Tensor<float> weight = load_(prefix + "enlarge" + number + ".weight"),
                          bias = load_(prefix + "enlarge" + number + ".bias");
      tap.enlarge.emplace(weight.view(), bias.flat(), products_);
    }
    for (std::size_t pair = 0; pair < c_.pairs; ++pair) {
      const std::string name = prefix + "pair." + std::to_string(pair) + ".conv";
      out.pairs.push_back({normed(name + "1"), normed(name + "2")});
    }
    return {scale, tap_channels, std::move(out)};
  }

  QueryBoxLayer layer(const std::string& prefix) const {
    return {.q = linear(prefix + "q"),
            .k = linear(prefix + "k"),
            .v = linear(prefix + "v"),
            .o = linear(prefix + "o"),
            .norm1 = norm(prefix + "norm1", kQueryEps),
            .offsets = linear(prefix + "offsets"),
            .weights = linear(prefix + "weights"),
            .values = linear(prefix + "values"),
            .sampled = linear(prefix + "sampled"),
            .norm2 = norm(prefix + "norm2", kQueryEps),
            .fc1 = linear(prefix + "fc1"),
            .fc2 = linear(prefix + "fc2"),
            .norm3 = norm(prefix + "norm3", kQueryEps)};
  }

  const QueryBoxConfig& c_;
  const LoadDenseTensor& load_;
  const kernels::KernelTable& kernels_;
  const kernels::LinearKernels& products_;
};

}  // namespace

QueryBoxLayers build_query_boxes(const QueryBoxConfig& config, std::size_t num_taps, std::size_t tap_channels,
                                 const LoadDenseTensor& load, const kernels::KernelTable& kernels,
                                 const kernels::LinearKernels& products) {
  return QueryBoxBuilder(config, load, kernels, products).build(num_taps, tap_channels);
}

}  // namespace vit::internal
