// Files as training scripts write them, made of the tensors of a golden model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"

namespace vit::test {

/// The tensors of a model as a pickled dictionary under names that `rename` gives, and the bytes of
/// their storage; several of them may share one file.
class PickledModel {
 public:
  explicit PickledModel(FileCopy model) : model_(std::move(model)) {
    for (const FileCopy::Entry& entry : model_.entries())
      storage_.append(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  }

  const std::string& storage() const { return storage_; }

  /// Tensors for which `rename` gives "" are left out.
  std::string dict(const std::function<std::string(const std::string&)>& rename) const {
    std::string items;
    std::int64_t offset = 0;
    for (const FileCopy::Entry& entry : model_.entries()) {
      opcode::Tensor tensor{.storage_elements = static_cast<std::int64_t>(storage_.size() / sizeof(float)),
                            .offset = offset,
                            .shape = {entry.shape.begin(), entry.shape.end()},
                            .strides = std::vector<std::int64_t>(entry.shape.size(), 1)};
      for (std::size_t i = entry.shape.size(); i-- > 1;)
        tensor.strides[i - 1] = tensor.strides[i] * static_cast<std::int64_t>(entry.shape[i]);
      const std::string name = rename(entry.name);
      if (!name.empty()) items += opcode::string(name) + opcode::tensor(tensor);
      offset += static_cast<std::int64_t>(entry.bytes.size() / sizeof(float));
    }
    return opcode::dict(items);
  }
  std::string dict(const std::string& prefix = "") const {
    return dict([&](const std::string& name) { return prefix + name; });
  }

  /// One member of a dictionary.
  static std::string member(const std::string& key, const std::string& value) {
    return opcode::string(key) + value;
  }

  std::string file(const std::string& program) const { return torch_archive(program, storage_); }

 private:
  FileCopy model_;
  std::string storage_;
};

}  // namespace vit::test
