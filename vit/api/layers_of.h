// The layers of models, for sessions and encoders.
#pragma once

#include "vit/model.h"
#include "vit/text_encoder.h"
#include "vit/towers/text_transformer.h"
#include "vit/towers/vision_transformer.h"

namespace vit::internal {

struct LayersOf {
  /// The image tower of a checkpoint that is examined already.
  static std::shared_ptr<const Model> load_image(const CheckpointFolder& folder);
  static const VisionTransformer& image(const Model& model) noexcept;
  static const TextTransformer& text(const TextTower& tower) noexcept;
};

}  // namespace vit::internal
