// The drawing of a build with OpenCV: by its module, loaded at the first call.
#include <algorithm>
#include <iterator>

#include "apps/vit/ground/module_file.h"
#include "apps/vit/outputs/drawing_module.h"

namespace vit::app {
namespace {

constexpr ModuleFile kDrawing{.name = "vit_drawing",
                              .symbol = "vit_drawing_module_1",
                              .purpose = "draws",
                              .package = "libopencv-imgproc-dev",
                              .without = "--data writes the numbers without it"};

const DrawingModule& drawing_module() {
  static const auto* const module = static_cast<const DrawingModule*>(load_module(kDrawing));
  return *module;
}

}  // namespace

void load_drawing_module() {
  if (has_module(kDrawing)) drawing_module();
}

void check_can_draw() {
  drawing_module();
}

Image draw_colors(TensorView<const float> map, double low, double high, const Image* source) {
  return drawing_module().draw_colors(map, low, high, source);
}

Image draw_maps(const MapPicture& picture, const DrawOptions& options) {
  return drawing_module().draw_maps(picture, options);
}

Image draw_matches(const SeenImage& first, const SeenImage& second, std::span<const MatchLine> lines,
                   std::span<const std::string> caption, const DrawOptions& options) {
  return drawing_module().draw_matches(first, second, lines, caption, options);
}

Image draw_sheet(std::span<const Image> pictures, std::span<const std::string> caption) {
  return drawing_module().draw_sheet(pictures, caption);
}

std::vector<std::string> opencv_color_map_names() {
  return {std::begin(kOpencvColorMaps), std::end(kOpencvColorMaps)};
}

std::optional<ColorMap> opencv_color_map(std::string_view name) {
  if (std::ranges::find(kOpencvColorMaps, name) == std::end(kOpencvColorMaps)) return std::nullopt;
  return drawing_module().color_map(name);
}

void draw_text(Image& picture, const Box& box, const std::string& text, const Color& color, int line) {
  drawing_module().draw_text(picture, box, text, color, line);
}

}  // namespace vit::app
