// Source: facebookresearch/dinov3, dinov3/eval/text/vision_tower.py.
#include "vit/towers/joint_head.h"

#include <utility>

#include "vit/head/pooling.h"

namespace vit::internal {

JointHead::JointHead(Encoder encoder, LayerNorm norm, std::size_t num_prefix)
    : encoder_(std::move(encoder)), norm_(std::move(norm)), num_prefix_(num_prefix) {}

void JointHead::forward(TensorView<float> tokens, TensorView<float> out, const Pass& pass) const {
  Observer nothing;
  encoder_.forward(tokens, {.sequences = Sequences(tokens.dim(0), tokens.dim(1))}, nothing,
                   {.activations = pass.activations, .threads = pass.threads, .times = pass.times});
  const TensorView<float> rows(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
  norm_.forward(rows, rows, pass.threads);
  const std::size_t num_images = tokens.dim(0), width = tokens.dim(2);
  pool_token(tokens, 0, TensorView<float>(out.data(), Shape{num_images, width}, 2 * width));
  pool_mean(tokens, num_prefix_, tokens.dim(1),
            TensorView<float>(out.data() + width, Shape{num_images, width}, 2 * width));
}

}  // namespace vit::internal
