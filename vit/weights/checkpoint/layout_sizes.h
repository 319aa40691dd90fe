// What a layout file leaves out and the tensors contain: sizes by their shapes, switches by their presence.
#pragma once

#include <set>
#include <string>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Fills the fields of reading.config that are not `given`. Biases that the file does not have become zeros
/// if the model needs some. Throws Error naming every field that is missing.
void infer_sizes(const SourceFiles& files, const std::string& layout_name, const std::set<std::string>& given,
                 ParsedModel& reading);

}  // namespace vit::internal
