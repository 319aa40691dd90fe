// Copies pixels of the five formats to RGB.
#include "vit/image/convert.h"

#include <algorithm>

#include "vit/base/check.h"

namespace vit {

namespace {

/// Positions of R, G and B in a pixel.
struct ChannelOffsets {
  std::size_t red = 0;
  std::size_t green = 0;
  std::size_t blue = 0;
};

ChannelOffsets channel_offsets(PixelFormat format) {
  switch (format) {
    case PixelFormat::rgb:
    case PixelFormat::rgba: return {.red = 0, .green = 1, .blue = 2};
    case PixelFormat::bgr:
    case PixelFormat::bgra: return {.red = 2, .green = 1, .blue = 0};
    case PixelFormat::gray: return {};
  }
  return {};
}

}  // namespace

namespace internal {

void convert_to_rgb(ImageView image, Alpha alpha, std::uint8_t* out) {
  check_choice("to_rgb", "alpha", alpha, Alpha::on_white);
  const ChannelOffsets order = channel_offsets(image.format());
  const std::size_t num_bytes = bytes_per_pixel(image.format());
  const bool on_white = has_alpha(image.format()) && alpha == Alpha::on_white;
  for (std::size_t y = 0; y < image.height(); ++y) {
    const std::uint8_t* in = image.row(y);
    if (image.format() == PixelFormat::rgb) {
      out = std::copy_n(in, 3 * image.width(), out);
      continue;
    }
    for (std::size_t x = 0; x < image.width(); ++x, in += num_bytes, out += 3) {
      out[0] = in[order.red];
      out[1] = in[order.green];
      out[2] = in[order.blue];
      if (on_white) composite_on_white(out, in[3]);
    }
  }
}

void rotate_upright(const std::uint8_t* in, ImageSize stored, int orientation, std::uint8_t* out) {
  const ImageSize upright = upright_size(stored, orientation);
  const bool transposed = is_transposed(orientation);
  for (std::size_t y = 0; y < upright.height; ++y) {
    for (std::size_t x = 0; x < upright.width; ++x) {
      const std::size_t stored_x = transposed ? y : x;
      const std::size_t stored_y = transposed ? x : y;
      const std::size_t from_x = flips_x(orientation) ? stored.width - 1 - stored_x : stored_x;
      const std::size_t from_y = flips_y(orientation) ? stored.height - 1 - stored_y : stored_y;
      out = std::copy_n(in + 3 * (from_y * stored.width + from_x), 3, out);
    }
  }
}

}  // namespace internal

Image to_rgb(ImageView image, Alpha alpha) {
  Image out(image.height(), image.width());
  internal::convert_to_rgb(image, alpha, out.data());
  return out;
}

}  // namespace vit
