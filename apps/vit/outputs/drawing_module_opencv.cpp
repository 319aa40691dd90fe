// The module vit_drawing.so: drawings, color maps and text with OpenCV. See drawing_module.h.
#include "apps/vit/outputs/drawing_module.h"

#include <algorithm>
#include <iterator>

#include <opencv2/imgproc.hpp>

namespace vit::app {
namespace {

/// A question mark for each character that the font does not have.
std::string drawable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;  // a character of UTF-8
    if (!continues) out += c < ' ' || c > '~' ? '?' : c;
  }
  return out;
}

}  // namespace

std::optional<ColorMap> opencv_color_map(std::string_view name) {
  constexpr int kNumbers[] = {cv::COLORMAP_VIRIDIS, cv::COLORMAP_MAGMA, cv::COLORMAP_INFERNO,
                              cv::COLORMAP_PLASMA,  cv::COLORMAP_TURBO, cv::COLORMAP_CIVIDIS,
                              cv::COLORMAP_JET};
  static_assert(std::size(kNumbers) == std::size(kOpencvColorMaps));
  const auto* const known = std::ranges::find(kOpencvColorMaps, name);
  if (known == std::end(kOpencvColorMaps)) return std::nullopt;
  cv::Mat bytes(1, 256, CV_8UC1), colors;
  for (int i = 0; i < 256; ++i) bytes.at<unsigned char>(0, i) = static_cast<unsigned char>(i);
  cv::applyColorMap(bytes, colors, kNumbers[known - std::begin(kOpencvColorMaps)]);  // B, G, R
  ColorMap map;
  for (int i = 0; i < 256; ++i) {
    const cv::Vec3b color = colors.at<cv::Vec3b>(0, i);
    map[static_cast<std::size_t>(i)] = {color[2], color[1], color[0]};
  }
  return map;
}

void draw_text(Image& picture, const Box& box, const std::string& text, const Color& color, int line) {
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  const int width = static_cast<int>(picture.width()), height = static_cast<int>(picture.height());
  const double scale = 0.3 + 0.1 * line;
  const std::string drawn = drawable(text);
  int baseline = 0;
  const cv::Size size = cv::getTextSize(drawn, kFont, scale, 1, &baseline);
  const cv::Size bar(size.width + 2 * line, size.height + baseline + line);
  const auto place = [](double at, int length, int end) {
    return static_cast<int>(std::clamp(at, 0.0, std::max(0.0, static_cast<double>(end - length))));
  };
  const cv::Point corner(place(box.x0, bar.width, width), place(box.y0 - bar.height, bar.height, height));
  cv::Mat pixels(height, width, CV_8UC3, picture.data());
  cv::rectangle(pixels, cv::Rect(corner, bar), cv::Scalar(color[0], color[1], color[2]), cv::FILLED);
  const bool is_bright = 299 * color[0] + 587 * color[1] + 114 * color[2] > 128 * 1000;
  cv::putText(pixels, drawn, {corner.x + line, corner.y + size.height + line / 2 + 1}, kFont, scale,
              cv::Scalar::all(is_bright ? 0 : 255), 1 + line / 4, cv::LINE_AA);
}

}  // namespace vit::app

extern "C" {
__attribute__((visibility("default"))) extern const vit::app::DrawingModule vit_drawing_module_1;
const vit::app::DrawingModule vit_drawing_module_1{
    .draw_colors = vit::app::draw_colors,
    .draw_maps = vit::app::draw_maps,
    .draw_matches = vit::app::draw_matches,
    .draw_sheet = vit::app::draw_sheet,
    .color_map = vit::app::opencv_color_map,
    .draw_text = vit::app::draw_text,
};
}
