// The layers of a Vision Transformer in the order of the data, built from its weights. They are run
// in vision_transformer.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "vit/base/choices.h"
#include "vit/encoder/encoder.h"
#include "vit/head/head.h"
#include "vit/head/merger.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/pass.h"
#include "vit/patch/patch_embed.h"
#include "vit/position/position.h"
#include "vit/towers/eomt.h"
#include "vit/weights/model_weights.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {
/// Blocks without rotation after the final norm, and the vector that is compared with texts, as in dino.txt.
/// Letters: B images, T = prefix + N tokens, C = embed_dim.
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

struct ModelLayers {
  PatchEmbed patch_embed;
  std::unique_ptr<const PositionCache> positions;
  Encoder encoder;
  std::optional<LateQueries> late_queries;
  Head head;
  std::optional<Head> merged_head;  // of the visual tokens
  std::optional<JointHead> joint_head;
  std::optional<Merger> merger;
  std::vector<Merger> deepstack;  // one for each block of MergerConfig::deepstack
};

/// Packs every tensor that the config has for `kernels`. Blocks, mergers and attention pooling compute in
/// `precision`, the patch embedding in its `fine` arithmetic, all others in float32. Throws Error if a shape
/// does not match.
ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights,
                         const kernels::KernelTable& kernels, Precision precision);

}  // namespace vit::internal
