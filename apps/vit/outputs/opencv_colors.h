// OpenCV's color maps by matplotlib's names; none in a build without it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/outputs/color_maps.h"

namespace vit::app {

std::vector<std::string> opencv_color_map_names();
std::optional<ColorMap> opencv_color_map(std::string_view name);

}  // namespace vit::app
