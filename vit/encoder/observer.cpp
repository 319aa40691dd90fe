#include "vit/encoder/observer.h"

#include <algorithm>

namespace vit::internal {
namespace {

bool is_of_blocks(const OutputTensor& output) {
  switch (output.key.output) {
    case Output::embedded:
    case Output::block:
    case Output::attention:
    case Output::attention_query:
    case Output::rollout: return true;
    default: return false;
  }
}

}  // namespace

Observer::Observer(std::span<const OutputTensor> outputs, std::size_t first_image, std::size_t num_images)
    : first_image_(first_image), num_images_(num_images) {
  if (std::ranges::any_of(outputs, is_of_blocks)) outputs_ = outputs;
}

/// The images [first_image, first_image + num_images) of an output, if it was requested, are x.
void Observer::keep(TensorView<const float> x, const OutputKey& key) const {
  for (const OutputTensor& output : outputs_) {
    if (!(output.key == key)) continue;
    const TensorView<float> to = output.values.part(first_image_, num_images_);
    if (places_.empty()) std::ranges::copy(x.flat(), to.data());
    for (std::size_t row = 0; !places_.empty() && row < x.num_rows(); ++row) {
      const std::size_t token = row % places_.size();
      std::copy_n(x.row(row - token + places_[token]), x.num_columns(), to.row(row));
    }
  }
}

void Observer::before_blocks(TensorView<const float> x) const {
  keep(x, Output::embedded);
}

/// attention (images, H, T, T), or attention_query (images, H, T)
void Observer::tap_attention(const OutputTensor& output) {
  const bool is_query = output.key.output == Output::attention_query;
  for (std::size_t image = 0; image < num_images_; ++image) {
    const TensorView<float> heads = output.values[first_image_ + image];
    for (std::size_t head = 0; head < heads.dim(0); ++head) {
      taps_.push_back({.sequence = image,
                       .head = head,
                       .first_query = is_query ? output.key.token : 0,
                       .probabilities = is_query ? heads.part(head, 1) : heads[head]});
    }
  }
}

void Observer::before_block(std::size_t layer, TensorView<const float> x, AttentionInput& attention) {
  if (outputs_.empty()) return;
  taps_.clear();
  bool is_rolled_back = false;
  for (const OutputTensor& output : outputs_) {
    const Output kind = output.key.output;
    is_rolled_back = is_rolled_back || (kind == Output::rollout && output.key.index >= layer);
    if ((kind == Output::attention || kind == Output::attention_query) && output.key.index == layer)
      tap_attention(output);
  }
  if (is_rolled_back) {
    entered_.push_back({Tensor<float>(x.shape()), attention});
    std::ranges::copy(x.flat(), entered_.back().x.data());
  }
  attention.taps = taps_;
}

void Observer::after_block(std::size_t layer, TensorView<const float> x) const {
  if (reader_ != nullptr) reader_->read(layer, x);
  keep(x, {Output::block, layer});
}

void Observer::roll_out(const OutputTensor& output, std::span<const Block> blocks, const Pass& pass) const {
  // A row (B, T) of the product of the later blocks. Only row-matrix products are needed, so no
  // (T, T) matrix is stored.
  const std::size_t num_tokens = output.values.dim(1);
  std::vector<double> weights(num_images_ * num_tokens), sums(weights.size());
  for (std::size_t image = 0; image < num_images_; ++image)
    weights[image * num_tokens + output.key.token] = 1.0;
  for (std::size_t layer = output.key.index + 1; layer-- > 0;) {
    const Entered& entered = entered_[layer];
    blocks[layer].sum_probabilities(entered.x.view(), entered.attention, weights, sums, pass);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = 0.5 * (weights[k] + sums[k]);
  }
  std::ranges::transform(weights, output.values.part(first_image_, num_images_).data(),
                         [](double weight) { return static_cast<float>(weight); });
}

void Observer::after_blocks(std::span<const Block> blocks, const Pass& pass) const {
  for (const OutputTensor& output : outputs_) {
    if (output.key.output == Output::rollout) roll_out(output, blocks, pass);
  }
}

}  // namespace vit::internal
