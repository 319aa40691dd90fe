// Which family reads a checkpoint, and what is said if none does or its architecture is not known.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The first family that matches; sets files.match. Throws Error naming tensors and what would be known.
const Family& find_family(SourceFiles& files);

/// Reads as the family does, by the published architecture if it needs one. Throws Error naming those that
/// the tensors could be, and those whose names are close to the one that was given.
Reading read_with(const Family& family, const SourceFiles& files);

}  // namespace vit::internal
