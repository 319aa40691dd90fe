// The layers of models, for sessions and encoders.
#pragma once

#include "vit/model.h"
#include "vit/text_encoder.h"
#include "vit/towers/text_transformer.h"
#include "vit/towers/vision_transformer.h"

namespace vit::internal {

struct LayersOf {
  static const VisionTransformer& image(const Model& model) noexcept;
  static const TextTransformer& text(const TextTower& tower) noexcept;
};

}  // namespace vit::internal
