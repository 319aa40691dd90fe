// The tensors of a model before they were packed: read again from where the model was loaded.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vit/config/load_report.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::internal {

/// Names of all tensors of a model, and of its dense head if there is one, in the order of the data.
std::vector<std::string> tensor_names(const ModelConfig& config, const DenseConfig* dense);

/// Safe to share between threads. Keeps no file open until a tensor is read.
class StoredTensors {
 public:
  using Reader = std::function<LoadedTower<ModelConfig>()>;  // null if there is nothing to read from

  StoredTensors() = default;
  explicit StoredTensors(Reader reader) : reader_(std::move(reader)) {}

  /// Throws Error for a name that is none of `names`, and if what is read is not the model of `report`.
  Tensor<float> read(const std::string& name, const LoadReport& report,
                     std::span<const std::string> names) const;

 private:
  Reader reader_;
  mutable std::mutex mutex_{};
  mutable std::map<std::string, WeightTensor> tensors_{};  // once they were read
};

}  // namespace vit::internal
