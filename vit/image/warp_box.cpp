#include "vit/image/warp_box.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr float kMargin = 1.25f;
constexpr float kUnit = 200.0f;  // of the affine map, whatever the box was rounded in

/// The neighbors of a point and how much of the second; `inside` is false beyond the centers of the border.
struct Neighbors {
  std::size_t first = 0, second = 0;
  double weight = 0;
  bool inside = false;
};

Neighbors neighbors(double at, std::size_t size) {
  const double last = static_cast<double>(size - 1);
  if (!(at >= 0.0 && at <= last)) return {};
  const double low = std::floor(at);
  const auto first = static_cast<std::size_t>(low);
  return {.first = first, .second = std::min(first + 1, size - 1), .weight = at - low, .inside = true};
}

/// Pixel x of the result lies at origin + x * step of the image.
struct AxisMap {
  double origin, step;
};

/// The matrix from the image to the result is float32, its inverse is not. Not inlined: where g++ 12 computes
/// both axes as one vector it leaves the rounding to float32 out.
[[gnu::noinline]] AxisMap axis_map(float center, float extent, std::size_t size) {
  const float pixels = extent * kUnit;
  const double scale = (static_cast<double>(size) - 1.0) / static_cast<double>(pixels);
  const float stored_scale = static_cast<float>(scale);
  const float shift = -0.5f * (center * 2.0f) + 0.5f * pixels;
  const float stored_shift = static_cast<float>(scale * static_cast<double>(shift));
  const double step = 1.0 / static_cast<double>(stored_scale);
  return {.origin = -static_cast<double>(stored_shift) * step, .step = step};
}

}  // namespace

bool is_outside(const Box& box, ImageSize image) noexcept {
  const bool is_box =
      box.x0 < box.x1 && box.y0 < box.y1 && std::isfinite(box.x1 - box.x0) && std::isfinite(box.y1 - box.y0);
  return is_box && (box.x0 >= static_cast<double>(image.width) ||
                    box.y0 >= static_cast<double>(image.height) || box.x1 <= 0.0 || box.y1 <= 0.0);
}

WidenedBox widened(const Box& box, ImageSize target, double unit) {
  constexpr double kMost = 1e7;  // pixels
  for (const double edge : {box.x0, box.y0, box.x1, box.y1}) {
    VIT_CHECK(std::isfinite(edge) && std::abs(edge) <= kMost, (Where{"box", ErrorKind::argument}),
              "an edge of the box is ", edge, ", expected pixels");
  }
  double width = box.x1 - box.x0, height = box.y1 - box.y0;
  VIT_CHECK(width > 0.0 && height > 0.0, (Where{"box", ErrorKind::argument}), "the box (", box.x0, ", ",
            box.y0, ", ", box.x1, ", ", box.y1, ") is empty; expected x0 < x1 and y0 < y1");
  const double ratio = static_cast<double>(target.width) / static_cast<double>(target.height);
  WidenedBox out{.center_x = static_cast<float>(box.x0 + width * 0.5),
                 .center_y = static_cast<float>(box.y0 + height * 0.5)};
  if (width > ratio * height) {
    height = width / ratio;
  } else if (width < ratio * height) {
    width = height * ratio;
  }
  out.width = static_cast<float>(width / unit) * kMargin;
  out.height = static_cast<float>(height / unit) * kMargin;
  return out;
}

BoxMap box_map(const WidenedBox& box, ImageSize target) {
  const AxisMap columns = axis_map(box.center_x, box.width, target.width);
  const AxisMap rows = axis_map(box.center_y, box.height, target.height);
  return {.left = columns.origin, .top = rows.origin, .x_step = columns.step, .y_step = rows.step};
}

void warp_box(const PixelRows& in, const BoxMap& map, ImageSize target, std::uint8_t* out) {
  const std::size_t channels = in.channels;
  for (std::size_t y = 0; y < target.height; ++y) {
    const Neighbors rows = neighbors(map.top + static_cast<double>(y) * map.y_step, in.height);
    for (std::size_t x = 0; x < target.width; ++x, out += channels) {
      const Neighbors columns = neighbors(map.left + static_cast<double>(x) * map.x_step, in.width);
      if (!rows.inside || !columns.inside) {
        std::fill_n(out, channels, std::uint8_t{0});
        continue;
      }
      const std::uint8_t* const corners[] = {
          in.at(rows.first, columns.first), in.at(rows.first, columns.second),
          in.at(rows.second, columns.first), in.at(rows.second, columns.second)};
      // products in scipy's order, for sums that end in a half
      const double top = 1.0 - rows.weight, left = 1.0 - columns.weight;
      for (std::size_t c = 0; c < channels; ++c) {
        const double value = corners[0][c] * top * left + corners[1][c] * top * columns.weight +
                             corners[2][c] * rows.weight * left +
                             corners[3][c] * rows.weight * columns.weight;
        out[c] = static_cast<std::uint8_t>(std::min(value + 0.5, 255.0));
      }
    }
  }
}

}  // namespace vit::internal
