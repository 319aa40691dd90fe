// Named tensors of a safetensors file as plain numbers: the short way to a golden value.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/safetensors.h"

namespace vit::test {
using namespace internal;

/// A golden file. A tensor that is not there is an Error with its name, so a test cannot pass for lack of
/// data.
class FixtureTensors {
 public:
  explicit FixtureTensors(const std::filesystem::path& path) : file_(open_safetensors(path)) {}

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  std::vector<std::size_t> shape(std::string_view name) const { return file_.at(name).shape; }
  /// Floating-point tensors of any rank, flattened row-major.
  std::vector<double> doubles(std::string_view name) const { return to_double(file_.at(name)); }
  /// The tensor as float32, with its shape.
  Tensor<float> floats(std::string_view name) const { return to_float(file_.at(name)); }
  /// The bytes of an 8-bit tensor.
  std::vector<unsigned char> bytes(std::string_view name) const {
    const TensorEntry& entry = file_.at(name);
    VIT_CHECK(entry.dtype == Dtype::u8, "FixtureTensors", entry.describe(), " is not uint8");
    const std::vector<std::byte> bytes = entry.bytes.copy();
    const auto* const first = reinterpret_cast<const unsigned char*>(bytes.data());
    return {first, first + bytes.size()};
  }
  const TensorFile& file() const { return file_; }

 private:
  TensorFile file_;
};

}  // namespace vit::test
