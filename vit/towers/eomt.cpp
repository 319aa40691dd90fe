#include "vit/towers/eomt.h"

#include <algorithm>
#include <cstring>

#include "vit/base/check.h"
#include "vit/base/interpolation.h"

namespace vit::internal {

// The memory of the tokens is that of the later blocks: images move from the last on.
TensorView<float> LateQueries::forward(TensorView<float> tokens, EncoderInput input, const Encoder& encoder,
                                       BlockHooks hooks, const Pass& pass) const {
  encoder.forward(tokens, input, {0, block_}, hooks, pass);
  const std::size_t images = tokens.dim(0), before = tokens.dim(1), width = tokens.dim(2);
  const std::size_t count = queries_.dim(0);
  const TensorView<float> all(tokens.data(), Shape{images, count + before, width});
  for (std::size_t image = images; image-- > 0;) {
    float* const to = all[image].data();
    std::memmove(to + count * width, tokens[image].data(), before * width * sizeof(float));
    std::ranges::copy(queries_.flat(), to);
  }
  input.sequences = input.wanted = Sequences(images, count + before);
  input.num_prefix += count;
  return encoder.forward(all, input, {block_, encoder.depth()}, hooks, pass);
}

void QueryMasks::before(std::size_t layer, TensorView<float> x, AttentionInput& attention) {
  if (std::ranges::find(blocks_, layer) != blocks_.end()) compute(x);
  attention.mask = mask_;
}

void QueryMasks::compute(TensorView<const float> x) {
  VIT_CHECK(head_ != nullptr && head_->has_masks(), "QueryMasks",
            "blocks with masks, but no head that outputs them", kWithoutHeads);
  const Shape shape = head_->mask_shape(grid_);
  const std::size_t queries = shape[0], patches = grid_.rows * grid_.columns;
  const std::size_t tokens = x.num_rows() / num_images_;
  if (!memory_.maps) memory_.maps = head_->make_memory();
  if (memory_.masks.empty() || !(memory_.masks.shape() == shape)) memory_.masks = Tensor<float>(shape);
  memory_.hidden.resize(num_images_ * queries * patches);
  for (std::size_t image = 0; image < num_images_; ++image) {
    head_->compute_masks({x.row(image * tokens), Shape{tokens, x.num_columns()}}, grid_, memory_.masks,
                         threads_, *memory_.maps);
    for (std::size_t q = 0; q < queries; ++q)
      hide_patches(memory_.masks.view()[q], memory_.hidden.data() + (image * queries + q) * patches);
  }
  mask_ = {.hidden = memory_.hidden.data(), .queries = queries, .keys = patches};
}

/// A mask at the size of the grid: patches where it is not positive are hidden.
void QueryMasks::hide_patches(TensorView<const float> mask, std::uint8_t* hidden) const {
  for (std::size_t y = 0; y < grid_.rows; ++y) {
    const auto row = bilinear_source(y, grid_.rows, mask.dim(0));
    const float* const above = mask.row(row.first);
    const float* const below = mask.row(row.second);
    for (std::size_t x = 0; x < grid_.columns; ++x) {
      const auto column = bilinear_source(x, grid_.columns, mask.dim(1));
      const auto between = [&](const float* values) {
        return (1.0f - column.t) * values[column.first] + column.t * values[column.second];
      };
      *hidden++ = (1.0f - row.t) * between(above) + row.t * between(below) > 0.0f ? 0 : 1;
    }
  }
}

}  // namespace vit::internal
