#include "vit/api/stored_tensors.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/tensor_id.h"

namespace vit::internal {
namespace {

constexpr Where kModelTensor{"Model::tensor", ErrorKind::argument};

}  // namespace

std::vector<std::string> tensor_names(const ModelConfig& config, const DenseConfig* dense) {
  std::vector<std::string> names;
  ModelWeights weights;
  for_each_tensor(config, weights,
                  [&](TensorId id, const Shape&, WeightTensor&) { names.push_back(canonical_name(id)); });
  if (dense == nullptr) return names;
  DenseWeights of_head;
  for_each_tensor(
      *dense, config.embed_dim, of_head,
      [&](const std::string& name, const Shape&, WeightTensor&) { names.push_back("dense." + name); });
  return names;
}

Tensor<float> StoredTensors::read(const std::string& name, const LoadReport& report,
                                  std::span<const std::string> names) const {
  VIT_CHECK(std::ranges::find(names, name) != names.end(), kModelTensor, report.path.string(),
            " has no tensor ", in_quotes(name), "; tensor_names() lists them");
  VIT_CHECK(reader_ != nullptr, kModelTensor.with(ErrorKind::unsupported), in_quotes(name),
            ": a model of the caller's bytes or tensors does not keep them");
  const std::scoped_lock lock(mutex_);
  if (tensors_.empty()) {
    LoadedTower<ModelConfig> checkpoint = reader_();
    VIT_CHECK(checkpoint.report.fingerprint == report.fingerprint, kModelTensor.with(ErrorKind::mismatch),
              report.path.string(), ": is another model than the one that was loaded from it");
    for_each_tensor(checkpoint.config, checkpoint.weights,
                    [&](TensorId id, const Shape&, WeightTensor& tensor) {
                      tensors_.emplace(canonical_name(id), std::move(tensor));
                    });
    if (checkpoint.dense)
      for_each_tensor(checkpoint.dense->config, checkpoint.config.embed_dim, checkpoint.dense->weights,
                      [&](const std::string& part, const Shape&, WeightTensor& tensor) {
                        tensors_.emplace("dense." + part, std::move(tensor));
                      });
  }
  return tensors_.at(name).load();
}

}  // namespace vit::internal
