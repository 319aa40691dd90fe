// From the samples of a TIFF, as stored, to colors.
#pragma once

#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vit/base/tensor.h"
#include "vit/image/convert.h"
#include "vit/image/tiff_layout.h"

namespace vit::internal::codecs {

/// Uses no memory until it is written.
using TiffBytes = Tensor<std::uint8_t>;

/// All samples as stored: one plane of interleaved samples, or one plane per sample.
struct TiffSamples {
  TiffBytes bytes;
  std::size_t row_bytes = 0;
  std::size_t plane_bytes = 0;
};

/// Colors of pixels, as Pillow maps the samples.
class TiffMapper {
 public:
  TiffMapper(const TiffLayout& layout, const TiffSamples& samples) : layout_(layout), samples_(samples) {}

  /// One pixel's color, for CIELab the input of lab_to_rgb(); returns its opacity.
  std::uint8_t map(std::size_t x, std::size_t y, std::uint8_t* rgb) const {
    switch (layout_.photometric) {
      case PHOTOMETRIC_PALETTE: {
        const std::size_t index = small(sample(x, y, 0));
        for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(layout_.palette[c][index] >> 8);
        break;
      }
      case PHOTOMETRIC_SEPARATED: {
        std::uint8_t ink[4];
        for (std::size_t c = 0; c < 4; ++c) ink[c] = high_byte(sample(x, y, c));
        cmyk_to_rgb(ink, rgb);
        break;
      }
      case PHOTOMETRIC_RGB:
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = high_byte(sample(x, y, c));
        break;
      case PHOTOMETRIC_CIELAB:
        // a and b are signed. Pillow treats those of planes as unsigned.
        for (std::size_t c = 0; c < 3; ++c) {
          const bool is_signed = c > 0 && !layout_.separate;
          rgb[c] = static_cast<std::uint8_t>(*sample(x, y, c).bytes ^ (is_signed ? 0x80 : 0));
        }
        break;
      default: std::fill_n(rgb, 3, gray(sample(x, y, 0)));
    }
    if (!layout_.has_alpha) return 255;
    const std::uint8_t alpha = high_byte(sample(x, y, layout_.num_colors));
    if (layout_.premultiplied && alpha != 255) {
      for (int c = 0; c < 3; ++c)
        rgb[c] = alpha == 0 ? 0 : static_cast<std::uint8_t>(std::min(255, rgb[c] * 255 / alpha));
    }
    return alpha;
  }

 private:
  struct Place {
    const std::uint8_t* bytes;
    std::size_t bit;  // inside the first byte
  };

  Place sample(std::size_t x, std::size_t y, std::size_t channel) const {
    const std::size_t index = layout_.separate ? x : x * layout_.num_samples + channel;
    const std::size_t plane = layout_.separate ? channel : 0;
    const std::size_t bit = index * layout_.bits;
    return {samples_.bytes.data() + plane * samples_.plane_bytes + y * samples_.row_bytes + bit / 8, bit % 8};
  }
  template <typename Number>
  static Number number(Place place) {  // libtiff delivers the byte order of the machine
    Number value;
    std::memcpy(&value, place.bytes, sizeof value);
    return value;
  }
  /// Two samples of 12 bits are stored in three bytes, high bits first.
  static std::uint32_t twelve_bits(Place place) {
    const std::uint8_t* const p = place.bytes;
    return place.bit == 0 ? std::uint32_t{p[0]} << 4 | p[1] >> 4 : (p[0] & 15u) << 8 | p[1];
  }
  std::uint8_t small(Place place) const {
    return static_cast<std::uint8_t>((*place.bytes >> (8 - layout_.bits - place.bit)) &
                                     ((1u << layout_.bits) - 1));
  }
  std::uint8_t high_byte(Place place) const {
    return layout_.bits == 16 ? static_cast<std::uint8_t>(number<std::uint16_t>(place) >> 8) : *place.bytes;
  }
  /// Up to 8 bits are scaled to 0..255, more are clamped.
  std::uint8_t gray(Place place) const {
    if (layout_.bits <= 8) {
      const auto level = static_cast<std::uint8_t>(small(place) * (255 / ((1u << layout_.bits) - 1)));
      return layout_.photometric == PHOTOMETRIC_MINISWHITE ? static_cast<std::uint8_t>(255 - level) : level;
    }
    if (layout_.bits == 12) return clipped(twelve_bits(place));
    if (layout_.format == SAMPLEFORMAT_IEEEFP) return clipped(static_cast<double>(number<float>(place)));
    if (layout_.bits == 32) return clipped(number<std::int32_t>(place));
    return layout_.format == SAMPLEFORMAT_INT ? clipped(number<std::int16_t>(place))
                                              : clipped(number<std::uint16_t>(place));
  }

  static std::uint8_t clipped(double value) {
    return static_cast<std::uint8_t>(std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 255.0));
  }

  const TiffLayout& layout_;
  const TiffSamples& samples_;
};

}  // namespace vit::internal::codecs
