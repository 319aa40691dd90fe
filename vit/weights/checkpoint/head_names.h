// The classifier that users put on a model: under a name of their own, or as the last layer of a Sequential.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// The tensors under one of the names that classifiers have.
struct StoredHead {
  std::string name;               // "fc", "head": without what is in front of it, and without a dot
  std::vector<std::string> rest;  // what follows it in the names of its tensors: "weight", "1.bias"

  /// Whether it is one matrix, with a bias or without.
  bool is_linear() const noexcept { return !layer.empty() || is_plain; }
  /// The layer of the matrix where that has a name of its own, with its dot: "1.".
  std::string layer{};
  bool is_plain = false;  // the matrix has none
};

/// The classifiers whose names start with `front`; usually one or none.
std::vector<StoredHead> find_heads(std::span<const TensorEntry> entries, std::string_view front);

/// Whether the tensor belongs to one of `heads`.
bool is_of_head(std::string_view name, std::string_view front, std::span<const StoredHead> heads);

/// Gives a linear classifier the name `own` that its family has for it ("head", "classifier"), if the file
/// has none of that name and only one of another. `renamed` becomes the name in the file, "" without a
/// change.
TensorFile with_own_head(TensorFile file, std::string_view front, std::string_view own, std::string& renamed);

}  // namespace vit::internal
