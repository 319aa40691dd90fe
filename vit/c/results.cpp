// Results of the C interface.
#include "vit/c/results.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/c/guard.h"

namespace vit::internal {
namespace {

std::size_t bytes_per_value(std::int32_t dtype) {
  switch (dtype) {
    case VIT_FLOAT64: return 8;
    case VIT_UINT8: return 1;
    default: return 4;
  }
}

}  // namespace

void Column::start(ArrayName name, std::int32_t dtype, std::size_t num_inputs) {
  name_ = name;
  dtype_ = dtype;
  num_inputs_ = num_inputs;
  is_uniform_ = true;
  bytes_.clear();
  entries_.clear();
}

std::size_t Column::bytes_of(const Shape& shape) const {
  return checked_mul(shape.num_elements(), bytes_per_value(dtype_), kCall);
}

void Column::fill_up_to(std::size_t input) {
  while (entries_.size() < input) {
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + bytes_of(first_shape_));  // zeros
    if (dtype_ == VIT_FLOAT32) {
      const float missing = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t at = offset; at < bytes_.size(); at += sizeof missing)
        std::memcpy(&bytes_[at], &missing, sizeof missing);
    }
    entries_.push_back({.offset = offset, .shape = first_shape_});
  }
}

void Column::put(std::size_t input, const void* values, const Shape& shape) {
  if (entries_.empty()) {
    first_shape_ = shape;
    bytes_.reserve(checked_mul(num_inputs_, bytes_of(shape), kCall));
  }
  fill_up_to(input);
  is_uniform_ = is_uniform_ && shape == first_shape_;
  const auto* const first = static_cast<const std::byte*>(values);
  entries_.push_back({.offset = bytes_.size(), .shape = shape});
  bytes_.insert(bytes_.end(), first, first + bytes_of(shape));
}

void Column::finish() {
  if (!entries_.empty()) fill_up_to(num_inputs_);
}

vit_array Column::all() const {
  VIT_CHECK(is_uniform_, kCall.with(ErrorKind::mismatch), "the inputs have different shapes, the first ",
            first_shape_.to_string(), "; get them one by one");
  vit_array out = array_of(bytes_.data(), dtype_, first_shape_);
  for (std::uint32_t i = out.ndim; i > 0; --i) out.shape[i] = out.shape[i - 1];
  out.shape[0] = entries_.size();
  ++out.ndim;
  return out;
}

vit_array Column::one(std::size_t input) const {
  const Entry& entry = entries_[input];
  return array_of(bytes_.data() + entry.offset, dtype_, entry.shape);
}

}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

Column& vit_results::column(ArrayName name, std::int32_t dtype) {
  for (std::size_t i = 0; i < num_columns_; ++i) {
    if (columns_[i].name() == name) return columns_[i];
  }
  if (columns_.size() == num_columns_) columns_.emplace_back();
  Column& column = columns_[num_columns_++];
  column.start(name, dtype, inputs_.size());
  return column;
}

void vit_results::fail(std::size_t input, ErrorKind kind, std::string failure) {
  inputs_[input].status = status_of(kind);
  inputs_[input].failure = std::move(failure);
}

const vit_results::Input& vit_results::input(std::size_t index) const {
  VIT_CHECK(index < inputs_.size(), kCall, "there are results of ", inputs_.size(), " inputs, but no index ",
            index);
  return inputs_[index];
}

const Column& vit_results::find(ArrayName name) const {
  for (std::size_t i = 0; i < num_columns_; ++i) {
    if (columns_[i].name() == name && !columns_[i].empty()) return columns_[i];
  }
  const bool all_failed =
      std::all_of(inputs_.begin(), inputs_.end(), [](const Input& input) { return input.status != VIT_OK; });
  VIT_CHECK(inputs_.empty() || !all_failed, kCall,
            "every input failed, the first: ", inputs_.front().failure);
  vit::fail(kCall, inputs_.empty() ? "there are no results" : "this array was not requested");
}

vit_status vit_results::first_failure() const {
  for (const Input& input : inputs_) {
    if (input.status != VIT_OK) return remember(input.status, input.failure.c_str());
  }
  return VIT_OK;
}

vit_status vit_results_create(vit_results** results) {
  return guarded([&] {
    vit_results*& out = object_at(results, "results");
    out = new vit_results;
  });
}

void vit_results_free(vit_results* results) {
  delete results;
}

size_t vit_results_size(const vit_results* results) {
  return results == nullptr ? 0 : results->size();
}

vit_status vit_results_status(const vit_results* results, size_t index, const char** message) {
  return guarded([&] {
    const vit_results::Input& input = object_at(results, "results").input(index);
    if (message != nullptr) *message = input.failure.c_str();
    return input.status;
  });
}

vit_status vit_results_image_size(const vit_results* results, size_t index, size_t* height, size_t* width) {
  return guarded([&] {
    const ImageSize size = object_at(results, "results").input(index).size;
    object_at(height, "height") = size.height;
    object_at(width, "width") = size.width;
  });
}

namespace {

ArrayName name_of(uint32_t name, int64_t block) {
  return {.name = name, .block = (name & (VIT_BLOCK | VIT_ATTENTION)) != 0 ? block : 0};
}

}  // namespace

vit_status vit_results_all(const vit_results* results, uint32_t name, int64_t block, vit_array* array) {
  return guarded(
      [&] { object_at(array, "array") = object_at(results, "results").find(name_of(name, block)).all(); });
}

vit_status vit_results_one(const vit_results* results, size_t index, uint32_t name, int64_t block,
                           vit_array* array) {
  return guarded([&] {
    const vit_results::Input& input = object_at(results, "results").input(index);
    if (input.status != VIT_OK) return remember(input.status, input.failure.c_str());
    object_at(array, "array") = results->find(name_of(name, block)).one(index);
    return vit_status{VIT_OK};
  });
}
