// What the preprocessing of OpenCLIP's files needs of the model's.
#pragma once

#include "vit/config.h"
#include "vit/io/json.h"

namespace vit::internal {

/// image_size of model_cfg.vision_cfg, one number or [height, width].
GridSize read_open_clip_image_size(const Json& vision_cfg);

}  // namespace vit::internal
