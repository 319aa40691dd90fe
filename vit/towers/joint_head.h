// JointHead: blocks without rotation after the final norm, and the vector that is compared with texts, as in
// dino.txt. Letters: B images, T = prefix + N tokens, C = embed_dim.
#pragma once

#include <cstddef>

#include "vit/encoder/encoder.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/pass.h"

namespace vit::internal {

class JointHead {
 public:
  JointHead(Encoder encoder, LayerNorm norm, std::size_t num_prefix);

  /// tokens (B, T, C), after the final norm, are changed in place; out (B, 2 C) gets the class token and the
  /// mean of the patches, concatenated.
  void forward(TensorView<float> tokens, TensorView<float> out, const Pass& pass) const;

 private:
  Encoder encoder_;
  LayerNorm norm_;
  std::size_t num_prefix_;
};

}  // namespace vit::internal
