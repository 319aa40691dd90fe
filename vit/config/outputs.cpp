#include "vit/outputs.h"

#include <cmath>

#include "vit/base/check.h"

namespace vit {
namespace {

constexpr Where kWhere{"ImageOutputs", ErrorKind::argument};

/// The slice of one image out of a batched result; `name` is the member of Request that asks for it.
TensorView<const float> slice(const Tensor<float>& batched, std::size_t index, const char* name) {
  VIT_CHECK(!batched.empty(), kWhere, "not requested: Request::", name);
  return batched.view()[index];
}

TensorView<const float> slice(const std::vector<Tensor<float>>& batched, std::size_t i, std::size_t index,
                              const char* name) {
  VIT_CHECK(i < batched.size(), kWhere, "Request::", name, " has ", batched.size(),
            " entries, and none of index ", i);
  return batched[i].view()[index];
}

}  // namespace

ImageOutputs Outputs::operator[](std::size_t index) const& {
  VIT_CHECK(index < num_images, kWhere, "there are ", num_images, " images, and none of index ", index);
  return {*this, index};
}

ImageOutputs Results::operator[](std::size_t index) const& {
  VIT_CHECK(index < size(), kWhere, "there are ", size(), " images, and none of index ", index);
  return passes_[places_[index].pass][places_[index].index];
}

std::span<const float> ImageOutputs::logits() const {
  return slice(outputs_->logits, index_, "logits").flat();
}

std::span<const float> ImageOutputs::pooled() const {
  return slice(outputs_->pooled, index_, "pooled").flat();
}

std::span<const float> ImageOutputs::projected() const {
  return slice(outputs_->projected, index_, "projected").flat();
}

TensorView<const float> ImageOutputs::tokens() const {
  return slice(outputs_->tokens, index_, "tokens");
}

TensorView<const float> ImageOutputs::embedded() const {
  return slice(outputs_->embedded, index_, "embedded");
}

TensorView<const float> ImageOutputs::block(std::size_t i) const {
  return slice(outputs_->blocks, i, index_, "blocks");
}

TensorView<const float> ImageOutputs::attention(std::size_t i) const {
  return slice(outputs_->attention, i, index_, "attention");
}

TensorView<const float> ImageOutputs::attention_query(std::size_t i) const {
  return slice(outputs_->attention_queries, i, index_, "attention_queries");
}

std::span<const float> ImageOutputs::rollout(std::size_t i) const {
  return slice(outputs_->rollout, i, index_, "rollout").flat();
}

TensorView<const float> ImageOutputs::patches() const {
  const TensorView<const float> all = tokens();
  return {all.row(outputs_->num_prefix_tokens), Shape{grid().rows, grid().columns, all.dim(1)}};
}

std::span<const float> ImageOutputs::class_token() const {
  const TensorView<const float> all = tokens();
  VIT_CHECK(outputs_->has_class_token, kWhere.with(ErrorKind::mismatch), "this model has no class token");
  return all.flat().first(all.dim(1));
}

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

void normalize(std::span<float> vector) {
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  if (square == 0) return;
  const double length = std::sqrt(square);
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) / length);
}

}  // namespace vit
