// Portable bitmaps, graymaps and pixmaps, P1 to P6, and float maps, Pf, as Pillow reads them.
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

  /// The next integer after spaces and comments. Ends after the one space that follows it.
  std::uint32_t number(std::uint32_t most) {
    skip_blanks();
    std::uint32_t value = 0;
    std::size_t digits = 0;
    for (; rest() > 0 && !is_space(peek()) && peek() != '#'; ++at_, ++digits) {
      const std::uint8_t c = peek();
      if (c < '0' || c > '9' || digits == 10) refuse(source_, "corrupt PNM: expected a number at byte ", at_);
      const std::uint64_t longer = std::uint64_t{value} * 10 + (c - '0');
      if (longer > most) refuse(source_, "corrupt PNM: a number above ", most);
      value = static_cast<std::uint32_t>(longer);
    }
    if (digits == 0) refuse(source_, "truncated PNM: a number is missing at the end");
    if (rest() > 0 && is_space(peek())) ++at_;
    return value;
  }

  /// The next number with a fraction, as read by Python's float(). Ends after the one space that follows
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
      refuse(source_, "corrupt PNM: expected a number at byte ", begin);
    if (rest() > 0) ++at_;
    return value;
  }

  /// The next digit 0 or 1; blanks between digits are optional.
  bool bit() {
    skip_blanks();
    if (rest() == 0) refuse(source_, "truncated PNM: pixels are missing at the end");
    const std::uint8_t c = peek();
    if (c != '0' && c != '1') refuse(source_, "corrupt PNM: expected 0 or 1 at byte ", at_);
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

/// Python's round(value / most * range), which rounds half to even; grays above 8 bits are then clamped to
/// 255.
std::uint8_t level(std::uint32_t value, std::uint32_t most, bool wide_grey) {
  const double range = wide_grey ? 65535.0 : 255.0;
  const double scaled = std::nearbyint(static_cast<double>(value) / static_cast<double>(most) * range);
  return static_cast<std::uint8_t>(std::min(scaled, 255.0));
}

class PnmRows final : public RowSource {
 public:
  explicit PnmRows(const Source& source) : source_(source), cursor_(source_) {
    if (source.bytes.size() < 3 || !is_space(source.bytes[2]))
      refuse(source, "not an image, or of an unknown format");
    const int kind = source.bytes[1] - '0';  // P1 to P3 plain text, P4 to P6 binary; bits, grays, colors
    const int content = (kind - 1) % 3;
    plain_ = kind <= 3;
    is_bitmap_ = content == 0;
    channels_ = content == 2 ? 3 : 1;
    cursor_.skip(3);
    size_.width = cursor_.number(0x7FFFFFFF);
    size_.height = cursor_.number(0x7FFFFFFF);
    check_size(source, size_.width, size_.height);
    most_ = is_bitmap_ ? 1 : cursor_.number(0xFFFFFFFF);
    if (most_ == 0 || most_ > 65535)
      refuse(source, "corrupt PNM: a maximum of ", most_, " is not between 1 and 65535");
    const std::uint64_t num_samples = std::uint64_t{size_.width} * size_.height * channels_;
    const std::uint64_t least =
        plain_       ? (is_bitmap_ ? num_samples : 2 * num_samples - 1)  // a digit, and a blank between
        : is_bitmap_ ? (std::uint64_t{size_.width} + 7) / 8 * size_.height
                     : num_samples * (most_ > 255 ? 2 : 1);
    if (cursor_.rest() < least)
      refuse(source, "truncated PNM: ", cursor_.rest(), " bytes cannot contain the pixels");
  }

  ImageSize size() const override { return size_; }
  int orientation() const override { return 1; }

  ColumnRange start(ColumnRange wanted) override {
    columns_ = wanted;
    if (plain_) row_ = within_memory(source_, [&] { return std::vector<std::uint32_t>(num_samples()); });
    for (std::uint32_t value = 0; value < levels_.size() && !is_bitmap_; ++value)
      levels_[value] = level(value, most_, channels_ == 1 && most_ > 255);
    return columns_;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    for (std::size_t y = 0; y < count; ++y) {
      std::uint8_t* const rgb = rows + y * 3 * columns_.count();
      if (plain_) {
        map_row([row = read_plain_row()](std::size_t i) { return row[i]; }, rgb);
      } else if (is_bitmap_) {
        map_row([row = cursor_.take((size_.width + 7) / 8)](
                    std::size_t i) { return std::uint32_t{row[i / 8]} >> (7 - i % 8) & 1; },
                rgb);
      } else if (most_ > 255) {
        map_row([row = cursor_.take(2 * num_samples())](std::size_t i) { return be16(row + 2 * i); }, rgb);
      } else {
        map_row([row = cursor_.take(num_samples())](std::size_t i) { return std::uint32_t{row[i]}; }, rgb);
      }
    }
    next_y_ += count;
  }

  void skip(std::size_t count) override {
    next_y_ += count;
    for (; count > 0; --count) {
      if (plain_) {
        read_plain_row();
      } else {
        cursor_.take(is_bitmap_ ? (size_.width + 7) / 8 : num_samples() * (most_ > 255 ? 2 : 1));
      }
    }
  }
  void finish() override { skip(size_.height - next_y_); }

 private:
  std::size_t num_samples() const { return size_.width * channels_; }

  const std::uint32_t* read_plain_row() {
    for (std::uint32_t& value : row_) {
      if (is_bitmap_) {
        value = cursor_.bit() ? 1 : 0;
        continue;
      }
      value = cursor_.number(0xFFFFFFFF);
      if (value > most_) refuse(source_, "corrupt PNM: a sample of ", value, " above the maximum of ", most_);
    }
    return row_.data();
  }

  /// `sample(i)` is the i-th of a row. In a bitmap, 1 is black.
  template <typename Sample>
  void map_row(Sample sample, std::uint8_t* rgb) const {
    const auto shown = [&](std::uint32_t value) -> std::uint8_t {
      if (is_bitmap_) return value != 0 ? 0 : 255;
      if (value < levels_.size()) return levels_[value];
      return level(value, most_, channels_ == 1 && most_ > 255);
    };
    for (std::size_t x = columns_.begin; x < columns_.end; ++x, rgb += 3) {
      if (channels_ == 3) {
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = shown(sample(3 * x + c));
      } else {
        std::fill_n(rgb, 3, shown(sample(x)));
      }
    }
  }

  Source source_;
  Cursor cursor_;
  ImageSize size_;
  bool plain_ = false;
  bool is_bitmap_ = false;
  std::size_t channels_ = 1;
  std::uint32_t most_ = 1;
  std::array<std::uint8_t, 256> levels_{};  // of the first values
  std::vector<std::uint32_t> row_;          // samples of a row of plain text
  ColumnRange columns_;                     // of the rows
  std::size_t next_y_ = 0;
};

/// Gray floats of 32 bits, the lowest row first, clamped to 0 .. 255; the sign of the scale is their byte
/// order, its magnitude is ignored.
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

std::unique_ptr<RowSource> open_pnm(const Source& source) {
  return std::make_unique<PnmRows>(source);
}

Decoded decode_pnm(const Source& source) {
  if (source.bytes.size() > 2 && source.bytes[1] == 'f' && is_space(source.bytes[2]))
    return decode_float_map(source);
  return decode_rows(*open_pnm(source));
}

}  // namespace vit::internal::codecs
