// Whether a text contains characters next to each other that people do not write, but that UTF-8 read with
// a wrong table produces. The rule of ftfy.
#pragma once

#include <string_view>

namespace vit::internal {

bool is_bad(std::u32string_view text);

}  // namespace vit::internal
