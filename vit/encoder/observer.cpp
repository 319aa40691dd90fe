#include "vit/encoder/observer.h"

#include <algorithm>
#include <utility>

namespace vit::internal {

Observer::Observer(const Request& request, Outputs& outputs, std::size_t first_image, std::size_t num_images)
    : first_image_(first_image), num_images_(num_images) {
  if (!request.embedded && request.blocks.empty() && request.attention.empty() &&
      request.attention_queries.empty() && request.rollout.empty())
    return;
  request_ = &request;
  outputs_ = &outputs;
}

/// `all` (images, ...) gets x as its images [first_image, first_image + num_images).
void Observer::keep(TensorView<const float> x, Tensor<float>& all) const {
  std::ranges::copy(x.flat(), all.view().part(first_image_, num_images_).data());
}

void Observer::before_blocks(TensorView<const float> x) const {
  if (request_ != nullptr && request_->embedded) keep(x, outputs_->embedded);
}

/// all (images, H, T, T)
void Observer::tap_heads(Tensor<float>& all) {
  for (std::size_t image = 0; image < num_images_; ++image) {
    const TensorView<float> heads = all.view()[first_image_ + image];
    for (std::size_t head = 0; head < heads.dim(0); ++head)
      taps_.push_back({.sequence = image, .head = head, .probabilities = heads[head]});
  }
}

/// all (images, H, T)
void Observer::tap_query(std::size_t token, Tensor<float>& all) {
  for (std::size_t image = 0; image < num_images_; ++image) {
    const TensorView<float> heads = all.view()[first_image_ + image];
    for (std::size_t head = 0; head < heads.dim(0); ++head) {
      taps_.push_back(
          {.sequence = image, .head = head, .first_query = token, .probabilities = heads.part(head, 1)});
    }
  }
}

void Observer::before_block(std::size_t layer, TensorView<const float> x, AttentionInput& attention) {
  if (request_ == nullptr) return;
  if (std::ranges::any_of(request_->rollout, [&](const AttentionQuery& q) { return q.block >= layer; })) {
    entered_.push_back({Tensor<float>(x.shape()), attention});
    std::ranges::copy(x.flat(), entered_.back().x.data());
  }
  taps_.clear();
  for (std::size_t i = 0; i < request_->attention.size(); ++i) {
    if (request_->attention[i] == layer) tap_heads(outputs_->attention[i]);
  }
  for (std::size_t i = 0; i < request_->attention_queries.size(); ++i) {
    const AttentionQuery& query = request_->attention_queries[i];
    if (query.block == layer) tap_query(query.token, outputs_->attention_queries[i]);
  }
  attention.taps = taps_;
}

void Observer::after_block(std::size_t layer, TensorView<const float> x) const {
  if (request_ == nullptr) return;
  for (std::size_t i = 0; i < request_->blocks.size(); ++i) {
    if (request_->blocks[i] == layer) keep(x, outputs_->blocks[i]);
  }
}

void Observer::roll_out(const AttentionQuery& from, std::span<const Block> blocks, const Pass& pass,
                        Tensor<float>& all) const {
  // A row (B, T) of the product of the later blocks. Only products of a row with a matrix are needed, so no
  // (T, T) matrix is kept.
  const std::size_t num_tokens = all.dim(1);
  std::vector<double> weights(num_images_ * num_tokens), sums(weights.size());
  for (std::size_t image = 0; image < num_images_; ++image) weights[image * num_tokens + from.token] = 1.0;
  for (std::size_t layer = from.block + 1; layer-- > 0;) {
    const Entered& entered = entered_[layer];
    blocks[layer].sum_probabilities(entered.x.view(), entered.attention, weights, sums, pass);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = 0.5 * (weights[k] + sums[k]);
  }
  std::ranges::transform(weights, all.view().part(first_image_, num_images_).data(),
                         [](double weight) { return static_cast<float>(weight); });
}

void Observer::after_blocks(std::span<const Block> blocks, const Pass& pass) const {
  if (request_ == nullptr) return;
  for (std::size_t i = 0; i < request_->rollout.size(); ++i)
    roll_out(request_->rollout[i], blocks, pass, outputs_->rollout[i]);
}

}  // namespace vit::internal
