#include "vit/towers/deepstack.h"

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
  if (block_ != layer || !images_.request.has(Output::merged)) return;
  merger_->forward(tokens_of(x, images_.count()), images_.tokens(num_prefix_),
                   {.merged = images_.part_of(Output::merged)}, pass_);
}

}  // namespace vit::internal
