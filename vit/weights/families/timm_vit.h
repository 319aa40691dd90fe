// The tables of timm's VisionTransformer and Eva classes, which OpenCLIP's files with a timm tower use too.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The tensor by which files of timm's NaFlexVit are known.
inline constexpr std::string_view kNaFlexAnchor = "embeds.proj.weight";

/// The overrides of an architecture that are no arguments of timm's.
std::span<const std::string_view> naflex_overrides(const Architecture& architecture);

Layout timm_layout(const SourceFiles& files, const Architecture& architecture, const TimmArgs& args);

}  // namespace vit::internal
