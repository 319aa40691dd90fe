// The results of a run of the C interface: for each name one array that grows input by input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"
#include "vit/c.h"
#include "vit/image/image.h"

namespace vit::internal {

/// The name of an array; the block is used only for VIT_BLOCK and VIT_ATTENTION.
struct ArrayName {
  std::uint32_t name = 0;
  std::int64_t block = 0;
  bool operator==(const ArrayName&) const = default;
};

/// One name: the values of input after input. Inputs without values are filled once the first shape is known.
class Column {
 public:
  /// Clears the values, but keeps the memory.
  void start(ArrayName name, std::int32_t dtype, std::size_t num_inputs);
  const ArrayName& name() const noexcept { return name_; }

  /// Adds the values of `input`, after those of all before it.
  void put(std::size_t input, const void* values, const Shape& shape);
  /// The run is over: all inputs have an entry, unless none has values.
  void finish();

  bool empty() const noexcept { return entries_.empty(); }
  vit_array all() const;
  vit_array one(std::size_t input) const;

 private:
  struct Entry {
    std::size_t offset = 0;
    Shape shape;
  };
  void fill_up_to(std::size_t input);
  std::size_t bytes_of(const Shape& shape) const;

  ArrayName name_;
  std::int32_t dtype_ = VIT_FLOAT32;
  std::size_t num_inputs_ = 0;
  Shape first_shape_;
  bool is_uniform_ = true;
  std::vector<std::byte> bytes_;
  std::vector<Entry> entries_;
};

}  // namespace vit::internal

struct vit_results {
  struct Input {
    vit_status status = VIT_OK;
    std::string failure;
    vit::ImageSize size;
  };

  /// Throws what `run` throws, and is empty then. Returns the status of the first input that failed.
  template <typename Run>
  vit_status fill(std::size_t num_inputs, const Run& run) {
    clear();
    inputs_.resize(num_inputs);
    try {
      run();
      for (std::size_t i = 0; i < num_columns_; ++i) columns_[i].finish();
    } catch (...) {
      clear();
      throw;
    }
    return first_failure();
  }
  /// Clears everything; memory is kept.
  void clear() noexcept {
    inputs_.clear();
    num_columns_ = 0;
  }
  /// The column of this name, a new one if there is none.
  vit::internal::Column& column(vit::internal::ArrayName name, std::int32_t dtype);
  void set_size(std::size_t input, vit::ImageSize size) { inputs_[input].size = size; }
  void fail(std::size_t input, vit::ErrorKind kind, std::string failure);

  std::size_t size() const noexcept { return inputs_.size(); }
  /// Throws Error for an index out of range.
  const Input& input(std::size_t index) const;
  /// Throws Error if there is none of this name, with the failure of the first input if all failed.
  const vit::internal::Column& find(vit::internal::ArrayName name) const;

 private:
  vit_status first_failure() const;

  std::vector<Input> inputs_;
  std::vector<vit::internal::Column> columns_;  // those after the last one used keep their memory
  std::size_t num_columns_ = 0;
};
