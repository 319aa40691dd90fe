
#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "apps/vit/rings/dense/draw_shapes.h"

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

void draw_name(Image& picture, const Box& box, const std::string& name, const Color& color) {
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  const int width = static_cast<int>(picture.width()), height = static_cast<int>(picture.height());
  const int line = line_width(picture);
  const double scale = 0.3 + 0.1 * line;
  const std::string text = drawable(name);
  int baseline = 0;
  const cv::Size size = cv::getTextSize(text, kFont, scale, 1, &baseline);
  const cv::Size bar(size.width + 2 * line, size.height + baseline + line);
  const auto place = [](double at, int length, int end) {
    return static_cast<int>(std::clamp(at, 0.0, std::max(0.0, static_cast<double>(end - length))));
  };
  const cv::Point corner(place(box.x0, bar.width, width), place(box.y0 - bar.height, bar.height, height));
  cv::Mat pixels(height, width, CV_8UC3, picture.data());
  cv::rectangle(pixels, cv::Rect(corner, bar), cv::Scalar(color[0], color[1], color[2]), cv::FILLED);
  const bool is_bright = 299 * color[0] + 587 * color[1] + 114 * color[2] > 128 * 1000;
  cv::putText(pixels, text, {corner.x + line, corner.y + size.height + line / 2 + 1}, kFont, scale,
              cv::Scalar::all(is_bright ? 0 : 255), 1 + line / 4, cv::LINE_AA);
}

}  // namespace vit::app
