#include <opencv2/imgproc.hpp>

#include "apps/vit/outputs/color_maps.h"

namespace vit::app {
namespace {

constexpr std::pair<std::string_view, int> kMaps[] = {
    {"viridis", cv::COLORMAP_VIRIDIS}, {"magma", cv::COLORMAP_MAGMA}, {"inferno", cv::COLORMAP_INFERNO},
    {"plasma", cv::COLORMAP_PLASMA},   {"turbo", cv::COLORMAP_TURBO}, {"cividis", cv::COLORMAP_CIVIDIS},
    {"jet", cv::COLORMAP_JET}};

}  // namespace

std::vector<std::string> opencv_color_map_names() {
  std::vector<std::string> names;
  for (const auto& [name, number] : kMaps) names.emplace_back(name);
  return names;
}

std::optional<ColorMap> opencv_color_map(std::string_view name) {
  for (const auto& [known, number] : kMaps) {
    if (known != name) continue;
    cv::Mat bytes(1, 256, CV_8UC1), colors;
    for (int i = 0; i < 256; ++i) bytes.at<unsigned char>(0, i) = static_cast<unsigned char>(i);
    cv::applyColorMap(bytes, colors, number);  // B, G, R
    ColorMap map;
    for (int i = 0; i < 256; ++i) {
      const cv::Vec3b color = colors.at<cv::Vec3b>(0, i);
      map[static_cast<std::size_t>(i)] = {color[2], color[1], color[0]};
    }
    return map;
  }
  return std::nullopt;
}

}  // namespace vit::app
