// Heads that Meta publishes for DINOv2 in files of their own: linear ones for classes and for depth, and DPT.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Whether the tensors of such a head lie next to those of the backbone.
bool has_dino_head(const SourceFiles& files);

/// Adds the head that lies next to the tensors of `backbone`. Throws Error if none of the known ones does, or
/// if a number that no file has is missing.
void join_dino_head(const SourceFiles& files, ParsedModel& backbone);

}  // namespace vit::internal
