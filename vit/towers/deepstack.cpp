#include "vit/towers/deepstack.h"

namespace vit::internal {

void DeepStack::after(std::size_t layer, TensorView<float> x) {
  for (const OutputKey& key : images_.request.indexed()) {
    if (key.output != Output::deepstack || layers_[key.index] != layer) continue;
    const TensorView<const float> tokens(
        x.data(), Shape{images_.count(), x.num_rows() / images_.count(), x.num_columns()});
    mergers_[key.index].forward(tokens, images_.tokens(num_prefix_), {.merged = images_.part_of(key)}, pass_);
  }
}

}  // namespace vit::internal
