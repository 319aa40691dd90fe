// What the pages of SAM 3 share.
#pragma once

#include <string>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Of all necks.
inline constexpr HeadRow kSam3Neck[] = {{"{}.up.0.*", "{}.scale_layers.0.*"},
                                        {"{}.up.1.*", "{}.scale_layers.2.*"},
                                        {"{}.proj1.*", "{}.proj1.*"},
                                        {"{}.proj2.*", "{}.proj2.*"}};

/// A part of a configuration, an empty one if it is missing. Throws Error if it is no object.
Json sam3_part(const Json& config, const char* key);

/// Throws Error if a part of a configuration names an activation that is none of `names`, all of which mean
/// the default of its class.
void check_sam3_activation(const Json& part, const std::vector<std::string>& names);

/// The part for points, if the file has one (hf_sam3_tracker.cpp).
void add_sam3_tracker(const SourceFiles& files, ParsedPrompts& out);

}  // namespace vit::internal
