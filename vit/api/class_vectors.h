// Vectors of classes, checked.
#pragma once

#include "vit/zero_shot.h"

namespace vit::internal {

/// The classes with vectors of length 1. Throws Error if they are not (n, E) with a name each, or if there
/// are none.
ClassVectors normalized_classes(ClassVectors classes);

}  // namespace vit::internal
