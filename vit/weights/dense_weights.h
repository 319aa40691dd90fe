// The tensors of a dense head under the project's own names: "fusion.1.lateral.conv2.weight". Where they lie
// in a file is in the tables of families/head_layout.h. Letters as in vit/dense_config.h.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "vit/dense_config.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

/// By name; absent ones are not in it.
class DenseWeights {
 public:
  /// The tensor of that name. Throws Error if the list of for_each_tensor() has none.
  const WeightTensor& at(const std::string& name) const;
  bool has(const std::string& name) const { return tensors_.contains(name); }
  WeightTensor& add(const std::string& name) { return tensors_[name]; }

 private:
  std::map<std::string, WeightTensor> tensors_;
};

using VisitDenseTensor =
    std::function<void(const std::string& name, const Shape& shape, WeightTensor& tensor)>;

/// What precedes the numbers of a box perceptron's layers: "boxes.", "classes.", "objectness.".
std::string perceptron_name(Output meaning);

/// Whether taps of so many channels are made half as wide before their map is enlarged for queries.
constexpr bool narrows_taps(std::size_t width) {
  return width > 512;
}

/// Calls visit(name, shape, tensor) for every tensor that the head has, in the order of the data; C =
/// embed_dim. The one list of them.
void for_each_tensor(const DenseConfig& config, std::size_t embed_dim, DenseWeights& weights,
                     const VisitDenseTensor& visit);

}  // namespace vit::internal
