// Replacement for builds without OpenCV.
#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/outputs/drawing.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_opencv() {
  fail(Where{"draw", ErrorKind::unsupported},
       "this build of vit has no OpenCV: configure with -DVIT_OPENCV=ON (package libopencv-imgproc-dev); "
       "--data writes the numbers without it");
}

}  // namespace

void check_can_draw() {
  fail_without_opencv();
}
Image draw_colors(TensorView<const float>, double, double, const Image*) {
  fail_without_opencv();
}
Image draw_maps(const MapPicture&, const DrawOptions&) {
  fail_without_opencv();
}
Image draw_matches(const SeenImage&, const SeenImage&, std::span<const MatchLine>,
                   std::span<const std::string>, const DrawOptions&) {
  fail_without_opencv();
}
Image draw_sheet(std::span<const Image>, std::span<const std::string>) {
  fail_without_opencv();
}

void draw_text(Image&, const Box&, const std::string&, const Color&, int) {}
void load_drawing_module() {}

std::vector<std::string> opencv_color_map_names() {
  return {};
}
std::optional<ColorMap> opencv_color_map(std::string_view) {
  return std::nullopt;
}

}  // namespace vit::app
