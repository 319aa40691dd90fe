// Portable bitmaps, greymaps and pixmaps, P1 to P6, and float maps, Pf, as Pillow reads them.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

bool is_space(std::uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class Cursor {
 public:
  explicit Cursor(const Source& source) : source_(source) {}

  std::size_t rest() const { return source_.bytes.size() - at_; }
  const std::uint8_t* take(std::size_t count) {
    if (count > rest()) refuse(source_, "truncated PNM: ", rest(), " of ", count, " bytes of pixels");
    const std::uint8_t* const data = source_.bytes.data() + at_;
    at_ += count;
    return data;
  }
  void skip(std::size_t count) { at_ += count; }

  /// The next whole number after spaces and comments. Ends behind the one space that follows it.
  std::uint32_t number(std::uint32_t most) {
    skip_blanks();
    std::uint32_t value = 0;
    std::size_t digits = 0;
    for (; rest() > 0 && !is_space(peek()) && peek() != '#'; ++at_, ++digits) {
      const std::uint8_t c = peek();
      if (c < '0' || c > '9' || digits == 10)
        refuse(source_, "corrupt PNM: a number is expected at byte ", at_);
      const std::uint64_t longer = std::uint64_t{value} * 10 + (c - '0');
      if (longer > most) refuse(source_, "corrupt PNM: a number above ", most);
      value = static_cast<std::uint32_t>(longer);
    }
    if (digits == 0) refuse(source_, "truncated PNM: a number is missing at the end");
    if (rest() > 0 && is_space(peek())) ++at_;
    return value;
  }

  /// The next number with a fraction, as Python's float() reads it. Ends behind the one space that follows
  /// it.
  double real() {
    skip_blanks();
    const std::size_t begin = at_;
    while (rest() > 0 && !is_space(peek())) ++at_;
    const auto* const text = reinterpret_cast<const char*>(source_.bytes.data());
    const std::size_t first = begin + (begin < at_ && text[begin] == '+' ? 1 : 0);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text + first, text + at_, value);
    if (error != std::errc() || end != text + at_)
      refuse(source_, "corrupt PNM: a number is expected at byte ", begin);
    if (rest() > 0) ++at_;
    return value;
  }

  /// The next digit 0 or 1; blanks between digits are optional.
  bool bit() {
    skip_blanks();
    if (rest() == 0) refuse(source_, "truncated PNM: pixels are missing at the end");
    const std::uint8_t c = peek();
    if (c != '0' && c != '1') refuse(source_, "corrupt PNM: 0 or 1 is expected at byte ", at_);
    ++at_;
    return c == '1';
  }

 private:
  std::uint8_t peek() const { return source_.bytes[at_]; }
  void skip_blanks() {
    while (rest() > 0 && (is_space(peek()) || peek() == '#')) {
      if (peek() == '#') {
        while (rest() > 0 && peek() != '\n' && peek() != '\r') ++at_;
      } else {
        ++at_;
      }
    }
  }

  const Source& source_;
  std::size_t at_ = 0;
};

/// Python's round(value / most * range), which rounds half to even; greys above 8 bits are then cut off at
/// 255.
std::uint8_t level(std::uint32_t value, std::uint32_t most, bool wide_grey) {
  const double range = wide_grey ? 65535.0 : 255.0;
  const double scaled = std::nearbyint(static_cast<double>(value) / static_cast<double>(most) * range);
  return static_cast<std::uint8_t>(std::min(scaled, 255.0));
}

void read_bitmap(Cursor& cursor, bool packed, Image& image) {
  for (std::size_t y = 0; y < image.height(); ++y) {
    std::uint8_t* const rgb = image.row(y);
    const std::uint8_t* const row = packed ? cursor.take((image.width() + 7) / 8) : nullptr;
    for (std::size_t x = 0; x < image.width(); ++x) {
      const bool black = packed ? ((row[x / 8] >> (7 - x % 8)) & 1) != 0 : cursor.bit();
      std::fill_n(rgb + 3 * x, 3, static_cast<std::uint8_t>(black ? 0 : 255));
    }
  }
}

void read_levels(const Source& source, Cursor& cursor, bool plain, std::size_t channels, std::uint32_t most,
                 Image& image) {
  const std::size_t bytes_per_sample = most > 255 ? 2 : 1;
  const bool wide_grey = channels == 1 && most > 255;
  for (std::size_t y = 0; y < image.height(); ++y) {
    std::uint8_t* const rgb = image.row(y);
    const std::size_t num_samples = image.width() * channels;
    const std::uint8_t* const row = plain ? nullptr : cursor.take(num_samples * bytes_per_sample);
    for (std::size_t i = 0; i < num_samples; ++i) {
      std::uint32_t value = 0;
      if (plain) {
        value = cursor.number(0xFFFFFFFF);
        if (value > most) refuse(source, "corrupt PNM: a sample of ", value, " above the maximum of ", most);
      } else {
        value = bytes_per_sample == 2 ? be16(row + 2 * i) : row[i];
      }
      const std::uint8_t out = level(value, most, wide_grey);
      if (channels == 3) {
        rgb[i] = out;
      } else {
        std::fill_n(rgb + 3 * i, 3, out);
      }
    }
  }
}

/// Grey floats of 32 bits, the lowest row first, cut off at 0 and 255; the sign of the scale is their byte
/// order, its size does not count.
Decoded decode_float_map(const Source& source) {
  Cursor cursor(source);
  cursor.skip(3);
  const std::uint32_t width = cursor.number(0x7FFFFFFF);
  const std::uint32_t height = cursor.number(0x7FFFFFFF);
  check_size(source, width, height);
  const double scale = cursor.real();
  if (scale == 0.0 || !std::isfinite(scale)) refuse(source, "corrupt PNM: a scale of ", scale);
  constexpr std::size_t kFloatBytes = 4;
  const std::size_t num_bytes = std::size_t{width} * height * kFloatBytes;
  const std::uint8_t* in = cursor.take(num_bytes);
  Decoded decoded;
  decoded.image = Image(height, width);
  for (std::size_t y = height; y-- > 0;) {
    std::uint8_t* const rgb = decoded.image.row(y);
    for (std::size_t x = 0; x < width; ++x, in += kFloatBytes) {
      const auto value = std::bit_cast<float>(scale < 0.0 ? le32(in) : be32(in));
      std::fill_n(rgb + 3 * x, 3,
                  static_cast<std::uint8_t>(std::isnan(value) ? 0.0f : std::clamp(value, 0.0f, 255.0f)));
    }
  }
  return decoded;
}

}  // namespace

Decoded decode_pnm(const Source& source) {
  if (source.bytes.size() < 3 || !is_space(source.bytes[2]))
    refuse(source, "not an image, or of an unknown format");
  if (source.bytes[1] == 'f') return decode_float_map(source);
  const int kind = source.bytes[1] - '0';  // P1 to P3 plain text, P4 to P6 binary; bits, greys, colors
  const bool plain = kind <= 3;
  const int content = (kind - 1) % 3;
  Cursor cursor(source);
  cursor.skip(3);
  const std::uint32_t width = cursor.number(0x7FFFFFFF);
  const std::uint32_t height = cursor.number(0x7FFFFFFF);
  check_size(source, width, height);
  const std::uint32_t most = content == 0 ? 1 : cursor.number(0xFFFFFFFF);
  if (most == 0 || most > 65535)
    refuse(source, "corrupt PNM: a maximum of ", most, " is not between 1 and 65535");
  const std::size_t channels = content == 2 ? 3 : 1;
  const std::uint64_t num_samples = std::uint64_t{width} * height * channels;
  const std::uint64_t least =
      plain          ? (content == 0 ? num_samples : 2 * num_samples - 1)  // a digit, and a blank between
      : content == 0 ? (std::uint64_t{width} + 7) / 8 * height
                     : num_samples * (most > 255 ? 2 : 1);
  if (cursor.rest() < least)
    refuse(source, "truncated PNM: ", cursor.rest(), " bytes cannot hold the pixels");
  Decoded decoded;
  decoded.image = Image(height, width);
  if (content == 0) {
    read_bitmap(cursor, !plain, decoded.image);
  } else {
    read_levels(source, cursor, plain, channels, most, decoded.image);
  }
  return decoded;
}

}  // namespace vit::internal::codecs
