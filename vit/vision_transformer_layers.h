// The layers of a Vision Transformer in the order of the data, built from its weights. How they are run
// stands in model.cpp.
#pragma once

#include <optional>

#include "vit/config.h"
#include "vit/encoder/encoder.h"
#include "vit/head/pooling.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/patch/patch_embed.h"
#include "vit/position/position.h"
#include "vit/weights/model_weights.h"

namespace vit {

struct ModelLayers {
  PatchEmbed patch_embed;
  position::Position position;
  Encoder encoder;
  std::optional<LayerNorm> norm;  // on all tokens
  std::optional<AttentionPool> pool;
  std::optional<LayerNorm> pooled_norm;
  std::optional<Linear> pooler{};
  std::optional<Linear> projection{};
  std::optional<Linear> head{};
  std::optional<Linear> head_distillation{};
};

/// Packs every tensor that the config has for `kernels`; the products of blocks and attention pooling compute
/// in `dtype` (f32, bf16, i8), the patch embedding in bf16 beside i8 where `kernels` multiply that, all
/// others in float32. Throws Error where a shape does not fit.
ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights,
                         const kernels::KernelTable& kernels, Dtype dtype);

}  // namespace vit
