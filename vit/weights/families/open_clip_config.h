// Reading open_clip_config.json field by field: what both towers and the preprocessing of OpenCLIP share.
#pragma once

#include <optional>
#include <string_view>

#include "vit/weights/families/source_files.h"

namespace vit::internal {

inline constexpr SizeRange kOpenClipCount{1, 1'000'000};

/// The only member that an object of keyword arguments may hold here.
std::optional<Json> only_member(const Json& kwargs, std::string_view key);
/// Whether a field of vision_cfg or text_cfg changes the arithmetic in a way that is not implemented, if it
/// is set: CoCa's pooling, variants of attention.
bool is_open_clip_switch(std::string_view key);
/// model_cfg. Throws Error for an unknown field.
Json open_clip_model_cfg(const SourceFiles& files);
/// image_size of model_cfg.vision_cfg, one number or [height, width].
GridSize read_open_clip_image_size(const Json& vision_cfg);

}  // namespace vit::internal
