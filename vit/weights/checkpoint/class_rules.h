// Information about classes in the files next to the weights, for any family: whether several may be true of
// one image, and the names of taggers.
#pragma once

#include <filesystem>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The file in which published taggers list their classes.
inline constexpr const char* kTagFile = "selected_tags.csv";

/// Fills `multi_label`, and labels and categories if the configuration has none and `folder` contains a
/// kTagFile with a row for each class. Throws Error if such a file is not CSV.
void read_class_rules(const SourceFiles& files, const std::filesystem::path& folder, ParsedModel& reading);

}  // namespace vit::internal
