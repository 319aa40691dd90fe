#include "vit/towers/deepstack.h"

#include <algorithm>
#include <vector>

namespace vit::internal {
namespace {

/// (B, T, C) of the rows of all images.
TensorView<const float> tokens_of(const TensorView<float>& x, std::size_t num_images) {
  return {x.data(), Shape{num_images, x.num_rows() / num_images, x.num_columns()}};
}

}  // namespace

void DeepStack::after(std::size_t layer, TensorView<float> x) {
  for (const OutputKey& key : images_.request.indexed()) {
    if (key.output != Output::deepstack || layers_[key.index] != layer) continue;
    mergers_[key.index].forward(tokens_of(x, images_.count()), images_.tokens(num_prefix_),
                                {.merged = images_.part_of(key)}, pass_);
  }
}

void EarlyMerger::after(std::size_t layer, TensorView<float> x) {
  if (std::ranges::find(blocks_, layer) == blocks_.end() || !images_.request.has(Output::merged)) return;
  const std::size_t width = x.num_columns(), count = blocks_.size();
  TensorView<float> tokens = x;
  if (count > 1) {
    std::vector<float>& joined = images_.lane->joined;
    joined.resize(x.num_rows() * count * width);
    tokens = TensorView<float>(joined.data(), Shape{x.num_rows(), count * width});
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t row = 0; blocks_[i] == layer && row < x.num_rows(); ++row)
        std::copy_n(x.row(row), width, tokens.row(row) + i * width);
    }
  }
  if (layer != std::ranges::max(blocks_)) return;
  merger_->forward(tokens_of(tokens, images_.count()), images_.tokens(num_prefix_),
                   {.merged = images_.part_of(Output::merged)}, pass_);
}

}  // namespace vit::internal
