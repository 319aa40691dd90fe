// The report of loading a checkpoint: its files, and the use of their tensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace vit {

/// One tensor of the file and its use.
struct TensorUse {
  std::string name;                // in the file
  std::vector<std::size_t> shape;  // outermost first
  std::string dtype;               // of the elements, as the file names it
  std::string feeds;               // the tensors of the model filled from it; "" if it is ignored
  std::string ignored_because;     // why it is not needed; "" if it is used
};

/// The report of loading.
struct LoadReport {
  std::filesystem::path path;                // as it was given to load
  std::vector<std::filesystem::path> files;  // weight files read
  std::string stored_dtype;                  // of most numbers
  /// 16 hexadecimal digits that identify a model: independent of the location of its files and
  /// of the precision. Computed from a sample of the weights; no protection against forgery.
  std::string fingerprint;
  std::size_t num_parameters = 0;  // elements of the tensors used
  std::vector<TensorUse> tensors;  // in file order
  std::vector<std::string> notes;  // which library's rules apply if they differ, assumed values, ...
};

}  // namespace vit
