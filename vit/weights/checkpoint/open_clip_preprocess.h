// OpenCLIP's evaluation transform: preprocess_cfg of open_clip_config.json. Called by preprocess_config.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "vit/config.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/files/json.h"

namespace vit::internal {

/// image_size of model_cfg.vision_cfg, one number or [height, width].
GridSize read_open_clip_image_size(const Json& vision_cfg);
/// patch_size of model_cfg.vision_cfg, that of the tower where timm's name for it stands there.
std::size_t read_open_clip_patch_size(const Json& vision_cfg);

/// `root` is the whole of open_clip_config.json.
PreprocessConfig read_open_clip_preprocess(const Json& root, const PreprocessLoadOptions& options,
                                           const std::string& source);

}  // namespace vit::internal
