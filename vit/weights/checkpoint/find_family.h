// Finds the family that reads a checkpoint; errors for unknown families and architectures.
#pragma once

#include <optional>
#include <string>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The checkpoint as the first family that matches reads it, by the published architecture if it needs one;
/// sets files.match. Throws Error naming tensors and the supported ones, or the architectures that the
/// tensors match and those with names similar to the given one.
ParsedModel parse_by_family(SourceFiles& files);

/// config.json's model_type if it is of transformers and no family reads it, else "".
std::string unknown_model_type(const std::optional<Json>& config);

}  // namespace vit::internal
