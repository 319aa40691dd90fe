// The distance between two names, for messages that suggest the intended one.
#pragma once

#include <cstddef>
#include <string_view>

namespace vit::internal {

/// Levenshtein's distance: the least number of bytes inserted, removed or replaced. Time and memory grow with
/// a.size() * b.size() and b.size().
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace vit::internal
