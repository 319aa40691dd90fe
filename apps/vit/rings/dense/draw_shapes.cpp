#include "apps/vit/rings/dense/draw_shapes.h"

#include <algorithm>
#include <cmath>

#include "apps/vit/outputs/drawing.h"

namespace vit::app {
namespace {

/// The pixels from `first` to `last` of both axes, both included, cut to the picture.
void fill(Image& picture, double left, double top, double right, double bottom, const Color& color) {
  const auto cut = [](double at, std::size_t size) {
    return static_cast<std::ptrdiff_t>(std::clamp(std::floor(at), -1.0, static_cast<double>(size)));
  };
  const std::ptrdiff_t x0 = std::max<std::ptrdiff_t>(cut(left, picture.width()), 0);
  const std::ptrdiff_t x1 =
      std::min(cut(right, picture.width()), static_cast<std::ptrdiff_t>(picture.width()) - 1);
  const std::ptrdiff_t y0 = std::max<std::ptrdiff_t>(cut(top, picture.height()), 0);
  const std::ptrdiff_t y1 =
      std::min(cut(bottom, picture.height()), static_cast<std::ptrdiff_t>(picture.height()) - 1);
  for (std::ptrdiff_t y = y0; y <= y1; ++y) {
    unsigned char* const row = picture.row(static_cast<std::size_t>(y));
    for (std::ptrdiff_t x = x0; x <= x1; ++x) std::ranges::copy(color, row + 3 * x);
  }
}

}  // namespace

void draw_name(Image& picture, const Box& box, const std::string& name, const Color& color) {
  draw_text(picture, box, name, color, line_width(picture));
}

int line_width(const Image& picture) {
  constexpr std::size_t kPixels = 300;
  return static_cast<int>(1 + std::max(picture.height(), picture.width()) / kPixels);
}

void draw_frame(Image& picture, const Box& box, const Color& color) {
  const double width = line_width(picture) - 1, right = box.x1 - 1.0, bottom = box.y1 - 1.0;
  fill(picture, box.x0, box.y0, right, box.y0 + width, color);
  fill(picture, box.x0, bottom - width, right, bottom, color);
  fill(picture, box.x0, box.y0, box.x0 + width, bottom, color);
  fill(picture, right - width, box.y0, right, bottom, color);
}

void draw_line(Image& picture, double x0, double y0, double x1, double y1, const Color& color) {
  constexpr double kMostSteps = 1e5;  // far beyond pictures
  const double steps =
      std::clamp(std::ceil(2.0 * std::max(std::abs(x1 - x0), std::abs(y1 - y0))), 1.0, kMostSteps);
  const double half = 0.5 * (line_width(picture) - 1);
  for (double i = 0.0; i <= steps; i += 1.0) {
    const double x = x0 + (x1 - x0) * i / steps, y = y0 + (y1 - y0) * i / steps;
    fill(picture, x - half, y - half, x + half, y + half, color);
  }
}

void draw_dot(Image& picture, double x, double y, const Color& color) {
  const double radius = 1.5 * line_width(picture);
  for (double row = std::ceil(y - radius); row <= y + radius; row += 1.0) {
    const double half = std::sqrt(std::max(radius * radius - (row - y) * (row - y), 0.0));
    fill(picture, x - half, row, x + half, row, color);
  }
}

}  // namespace vit::app
