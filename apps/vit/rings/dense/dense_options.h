// What the commands of maps share: the options that say what a dense head is, and the file of arrays of all
// images.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/options/options.h"
#include "vit/base/dtype.h"
#include "vit/base/tensor.h"

namespace vit::app {

/// --head, --taps, --depth-range, --max-depth, --resize-rule.
void add_dense_options(std::vector<Option>& list, DenseOptions& options);

/// Numbers of one image with their name: "depth" of input 3 becomes "depth.3".
struct NamedArray {
  std::string name;
  internal::Dtype dtype = internal::Dtype::f32;  // f32, i32 or u8
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;

  /// Without numbers yet, which push() adds.
  static NamedArray of_rows(std::string name, std::vector<std::size_t> shape,
                            internal::Dtype dtype = internal::Dtype::f32) {
    return {.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .bytes = {}};
  }
  template <typename Number>
  void push(Number value) {
    const auto more = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  static NamedArray of(std::string name, TensorView<const float> view);
  static NamedArray of(std::string name, TensorView<const std::int32_t> view);
  static NamedArray of(std::string name, TensorView<const std::uint8_t> view);
};

/// Arrays of all images in one .safetensors or .npz file, which lists the inputs. Numbers wait on disk.
class MapArrays {
 public:
  /// Throws UsageError for another extension, Error where the file cannot be made.
  explicit MapArrays(const std::filesystem::path& path);
  ~MapArrays();
  /// The arrays of the input that has this number in the whole run.
  void add(std::size_t index, const std::string& file, std::span<const NamedArray> arrays);
  /// Writes the file.
  void finish();
  std::string summary() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vit::app
