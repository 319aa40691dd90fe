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

Observer::Observer(const ObservedImages& images, std::span<const Block> blocks, const Pass& pass)
    : images_(images), blocks_(blocks), pass_(pass) {
  if (std::ranges::none_of(images.outputs, is_of_blocks)) images_.outputs = {};
}

/// The observed images of an output, if it was requested, are x.
void Observer::keep(TensorView<const float> x, const OutputKey& key) const {
  for (const OutputTensor& output : images_.outputs) {
    if (!(output.key == key)) continue;
    const TensorView<float> to = output.values.part(images_.first, images_.count);
    if (images_.places.empty()) std::ranges::copy(x.flat(), to.data());
    for (std::size_t row = 0; !images_.places.empty() && row < x.num_rows(); ++row) {
      const std::size_t token = row % images_.places.size();
      std::copy_n(x.row(row - token + images_.places[token]), x.num_columns(), to.row(row));
    }
  }
}

/// attention (images, H, T, T), or attention_query (images, H, T)
void Observer::tap_attention(const OutputTensor& output) {
  const bool is_query = output.key.output == Output::attention_query;
  for (std::size_t image = 0; image < images_.count; ++image) {
    const TensorView<float> heads = output.values[images_.first + image];
    for (std::size_t head = 0; head < heads.dim(0); ++head) {
      taps_.push_back({.sequence = image,
                       .head = head,
                       .first_query = is_query ? output.key.token : 0,
                       .probabilities = is_query ? heads.part(head, 1) : heads[head]});
    }
  }
}

void Observer::before(std::size_t layer, TensorView<float> x, AttentionInput& attention) {
  if (images_.outputs.empty()) return;
  taps_.clear();
  bool is_rolled_back = false;
  for (const OutputTensor& output : images_.outputs) {
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

void Observer::roll_out(const OutputTensor& output) const {
  // A row (B, T) of the product of the later blocks. Only row-matrix products are needed, so no
  // (T, T) matrix is stored.
  const std::size_t num_tokens = output.values.dim(1);
  std::vector<double> weights(images_.count * num_tokens), sums(weights.size());
  for (std::size_t image = 0; image < images_.count; ++image)
    weights[image * num_tokens + output.key.token] = 1.0;
  for (std::size_t layer = output.key.index + 1; layer-- > 0;) {
    const Entered& entered = entered_[layer];
    blocks_[layer].sum_probabilities(entered.x.view(), entered.attention, weights, sums, pass_);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = 0.5 * (weights[k] + sums[k]);
  }
  std::ranges::transform(weights, output.values.part(images_.first, images_.count).data(),
                         [](double weight) { return static_cast<float>(weight); });
}

void Observer::after(std::size_t layer, TensorView<float> x) {
  keep(x, {Output::block, layer});
  for (const OutputTensor& output : images_.outputs) {
    if (output.key.output == Output::rollout && output.key.index == layer) roll_out(output);
  }
}

}  // namespace vit::internal
