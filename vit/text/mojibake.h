// Repair of UTF-8 that was decoded as Latin-1 or windows-1252.
#pragma once

#include <string>
#include <string_view>

namespace vit::internal {

std::string fix_mojibake(std::string_view text);

}  // namespace vit::internal
