// Which family reads a checkpoint, and what is said if none does or its architecture is not known.
#pragma once

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The checkpoint as the first family that matches reads it, by the published architecture if it needs one;
/// sets files.match. Throws Error naming tensors and what would be known, or the architectures that the
/// tensors could be and those whose names are close to the one that was given.
ParsedModel parse_by_family(SourceFiles& files);

}  // namespace vit::internal
