// Colors on the command line.
#pragma once

#include <array>
#include <string>

namespace vit::app {

/// R, G, B of white, black, gray (grey), #rgb, #rrggbb or "r,g,b" with numbers from 0 to 255, as Pillow's
/// ImageColor reads them. Throws UsageError for anything else.
std::array<unsigned char, 3> parse_color(const std::string& color);

}  // namespace vit::app
