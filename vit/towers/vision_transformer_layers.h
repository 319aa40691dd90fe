// The layers of a Vision Transformer in the order of the data, built from its weights. They are run
// in vision_transformer.cpp.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "vit/base/choices.h"
#include "vit/config.h"
#include "vit/encoder/encoder.h"
#include "vit/head/head.h"
#include "vit/head/merger.h"
#include "vit/kernels/kernels.h"
#include "vit/patch/patch_embed.h"
#include "vit/position/position.h"
#include "vit/towers/joint_head.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

struct ModelLayers {
  PatchEmbed patch_embed;
  std::unique_ptr<const PositionCache> positions;
  Encoder encoder;
  Tensor<float> late_tokens;  // (Q, C), or none
  Head head;
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
