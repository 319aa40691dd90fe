#include "apps/vit/outputs/color_maps.h"

namespace vit::app {

std::vector<std::string> opencv_color_map_names() {
  return {};
}

std::optional<ColorMap> opencv_color_map(std::string_view) {
  return std::nullopt;
}

}  // namespace vit::app
