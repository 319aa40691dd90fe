#include "vit/outputs.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/config.h"
#include "vit/config/output_table.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"outputs", ErrorKind::argument};

}  // namespace

// --------------------------------------------------------------------------------------------------- Request

void Request::add(const OutputKey& key) {
  if (row_of(key.output).index != OutputIndex::none && !has(key)) indexed_.push_back(key);
  bits_ |= static_cast<std::uint32_t>(key.output);
}

bool Request::has_any(Output output) const noexcept {
  return (bits_ & static_cast<std::uint32_t>(output)) != 0;
}

bool Request::has(const OutputKey& key) const noexcept {
  if (!has_any(key.output)) return false;
  return row_of(key.output).index == OutputIndex::none || std::ranges::find(indexed_, key) != indexed_.end();
}

// --------------------------------------------------------------------------------------------------- Outputs

void OutputWriter::reserve_tensor(std::size_t place, const OutputKey& key, const Shape& shape) const {
  std::vector<OutputTensor>& tensors = to_.tensors_;
  std::vector<Tensor<float>>& memory = to_.memory_;
  if (tensors.size() == place) {
    tensors.push_back({key, {}});
    memory.emplace_back();
  }
  tensors[place].key = key;
  const auto bound = std::ranges::find(to_.bound_, key, &Outputs::Bound::key);
  if (bound != to_.bound_.end()) {
    VIT_CHECK(bound->memory.size() >= shape.num_elements(), kWhere, to_string(key), ": ", shape.to_string(),
              " needs ", shape.num_elements(), " numbers, but the bound memory has room for ",
              bound->memory.size());
    memory[place] = {};
    tensors[place].values = {bound->memory.data(), shape};
    return;
  }
  const std::size_t count = shape.num_elements();  // memory only grows
  if (count == 0 || memory[place].num_elements() < count) memory[place] = Tensor<float>(shape);
  tensors[place].values = {memory[place].data(), shape};
}

void OutputWriter::reserve(const Request& request, const ModelConfig& config, std::size_t num_inputs,
                           GridSize grid, std::size_t num_steps, const HeadSizes& head) const {
  check_request(request, config, head.config.get());
  to_.num_images_ = num_inputs / head.num_windows;
  to_.num_steps_ = num_steps;
  to_.num_windows_ = head.num_windows;
  to_.head_ = head.config;
  to_.frames_.assign(to_.num_images_, {});
  to_.steps_are_apart_ = config.image.stack == StackRule::apart;
  to_.grid_ = grid;
  to_.num_late_tokens_ = config.num_late_tokens();
  to_.num_prefix_tokens_ = config.num_prefix_tokens() + config.num_late_tokens();
  to_.has_class_token_ = config.tokens.class_token;
  const bool are_apart = to_.steps_are_apart_;
  const std::size_t num_patches = (are_apart ? 1 : num_steps) * grid.rows * grid.columns;
  OutputSizes sizes{.config = config,
                    .num_images = are_apart ? num_inputs * num_steps : num_inputs,
                    .grid = grid,
                    .maps = head.maps};
  std::size_t count = 0;
  for (const OutputRow& row : output_table()) {
    if (row.index != OutputIndex::none || row.shape_of == nullptr) continue;
    const bool is_wanted = std::ranges::any_of(output_table(), [&](const OutputRow& part) {
      return part.stored_in == row.output && request.has_any(part.output);
    });
    const bool is_first = row.output == Output::embedded;
    sizes.num_tokens = num_patches + (is_first ? config.num_prefix_tokens() : to_.num_prefix_tokens_);
    if (is_wanted) reserve_tensor(count++, row.output, row.shape_of(sizes));
  }
  for (const OutputKey& key : request.indexed()) {
    sizes.num_tokens = num_patches + config.num_prefix_after(key.index);
    VIT_CHECK(key.token < sizes.num_tokens, kWhere, to_string(key), ": token ", key.token,
              " requested for images with ", sizes.num_tokens, " tokens");
    reserve_tensor(count++, key, row_of(key.output).shape_of(sizes));
  }
  to_.tensors_.resize(count, {Output::tokens, {}});
  to_.memory_.resize(count);
}

TensorView<float> OutputWriter::find(const OutputKey& key) const noexcept {
  const OutputTensor* const found = to_.find_tensor(key);
  return found == nullptr ? TensorView<float>() : found->values;
}

void Outputs::bind(const OutputKey& key, std::span<float> memory) {
  VIT_CHECK(row_of(key.output).shape_of != nullptr, kWhere, to_string(key), " is part of ",
            row_of(row_of(key.output).stored_in).name, "; bind that");
  std::erase_if(bound_, [&](const Bound& bound) { return bound.key == key; });
  if (!memory.empty()) bound_.push_back({key, memory});
}

const OutputTensor* Outputs::find_tensor(const OutputKey& key) const noexcept {
  const auto found = std::ranges::find(tensors_, key, &OutputTensor::key);
  return found == tensors_.end() ? nullptr : &*found;
}

TensorView<const float> Outputs::operator[](const OutputKey& key) const {
  const OutputTensor* const found = find_tensor(key);
  VIT_CHECK(found != nullptr, kWhere, "not requested: ", to_string(key));
  return found->values;
}

ImageOutputs Outputs::operator[](std::size_t index) const& {
  VIT_CHECK(index < num_images_, kWhere, "there are ", num_images_, " images, but no index ", index);
  return {*this, index};
}

ImageOutputs BatchOutputs::operator[](std::size_t index) const& {
  VIT_CHECK(index < size(), kWhere, "there are ", size(), " images, but no index ", index);
  return passes_[places_[index].pass][places_[index].index];
}

TensorView<const float> ImageOutputs::operator[](const OutputKey& key) const {
  const OutputRow& row = row_of(key.output);
  const OutputKey stored(row.stored_in, key.index, key.token);
  VIT_CHECK(outputs_->has(stored), kWhere, "not requested: ", to_string(key));
  const std::size_t parts = outputs_->steps_are_apart_ ? outputs_->num_steps_ : outputs_->num_windows_;
  const TensorView<const float> all = (*outputs_)[stored];
  const TensorView<const float> values = parts == 1 ? all[index_] : all.part(index_ * parts, parts);
  return row.part_of == nullptr ? values : row.part_of(values, *outputs_);
}

ImageFrame ImageOutputs::frame() const {
  if (frame_) return *frame_;
  const std::vector<ImageFrame>& frames = outputs_->frames_;  // none where the outputs were moved from
  VIT_CHECK(index_ < frames.size(), kWhere, "there are ", frames.size(), " images, but no index ", index_);
  return frames[index_];
}

ImageOutputs ImageOutputs::of(const ImageFrame& frame) const {
  checked_mul(frame.image.height, frame.image.width, kWhere);
  ImageOutputs out = *this;
  out.frame_ = frame;
  return out;
}

// -------------------------------------------------------------------------------------------- single vectors

double cosine_similarity(std::span<const float> a, std::span<const float> b) {
  constexpr Where kCosine{"cosine_similarity", ErrorKind::argument};
  VIT_CHECK(a.size() == b.size(), kCosine, "vectors of ", a.size(), " and ", b.size(), " numbers");
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  const double lengths = std::sqrt(square_a) * std::sqrt(square_b);
  return lengths > 0 ? product / lengths : 0.0;
}

void normalize_vector(std::span<float> vector) {
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  if (square == 0) return;
  const double length = std::sqrt(square);
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) / length);
}

}  // namespace vit
