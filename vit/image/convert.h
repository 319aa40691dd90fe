// Pixels of any format to RGB, for decoders and preprocessing. Resampling works on three channels in either
// order, so bgr is not converted there.
#pragma once

#include <cstdint>

#include "vit/image/image.h"

namespace vit::internal {

/// Pillow's alpha_composite over opaque white: 7 extra bits, divisions by 255 rounded.
inline void composite_on_white(std::uint8_t* rgb, std::uint8_t alpha) {
  const std::uint32_t over = std::uint32_t{alpha} * 128;
  const std::uint32_t under = 255 * 128 - over;
  for (int c = 0; c < 3; ++c) {
    const std::uint32_t sum = rgb[c] * over + 255 * under + (0x80u << 7);
    rgb[c] = static_cast<std::uint8_t>((((sum >> 8) + sum) >> 8) >> 7);
  }
}

/// Writes (H, W, 3) bytes R, G, B without gaps.
void convert_to_rgb(ImageView image, Alpha alpha, std::uint8_t* out);

/// Whether the EXIF value swaps rows and columns; the size of the upright image.
constexpr bool is_transposed(int orientation) {
  return orientation >= 5;
}
constexpr ImageSize upright_size(ImageSize stored, int orientation) {
  return is_transposed(orientation) ? ImageSize{stored.width, stored.height} : stored;
}
/// Whether stored rows start at the right, and stored columns at the bottom.
constexpr bool flips_x(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}
constexpr bool flips_y(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

/// Rotates RGB pixels of the size `stored`, with the orientation of the EXIF value, to the upright
/// image.
void rotate_upright(const std::uint8_t* in, ImageSize stored, int orientation, std::uint8_t* out);

}  // namespace vit::internal
