// PNG through libpng without any of its conversions: samples are output as stored and mapped here as Pillow
// maps them.
#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>

#include <png.h>
#include <zlib.h>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/tensor.h"
#include "vit/image/codecs.h"
#include "vit/image/convert.h"

namespace vit::internal::codecs {

namespace {

struct Png {
  png_structp state = nullptr;
  png_infop info = nullptr;
  std::span<const std::uint8_t> rest;  // of the file
  std::jmp_buf on_error{};
  char message[256] = {};
};

[[noreturn]] void on_png_error(png_structp state, png_const_charp message) {
  Png& png = *static_cast<Png*>(png_get_error_ptr(state));
  std::strncpy(png.message, message, sizeof png.message - 1);
  std::longjmp(png.on_error, 1);
}

void on_png_warning(png_structp, png_const_charp) {}

void read_png(png_structp state, png_bytep out, std::size_t count) {
  Png& png = *static_cast<Png*>(png_get_io_ptr(state));
  if (count > png.rest.size()) png_error(state, "the data end before the image does");
  std::copy_n(png.rest.data(), count, out);
  png.rest = png.rest.subspan(count);
}

/// Runs `step`, which libpng may leave by longjmp; `step` must own nothing that needs a destructor.
template <typename Step>
void guarded(const Source& source, Png& png, Step step) {
  if (setjmp(png.on_error) != 0) refuse(source, "truncated, corrupt or unsupported PNG: ", png.message);
  step();
}

/// One text chunk.
struct Text {
  std::string_view keyword;
  std::string_view text;  // as stored
  bool deflated = false;
};

/// Removes the text up to the next zero from `data`, and the zero.
std::string_view cut_string(std::string_view& data) {
  const std::string_view string = data.substr(0, data.find('\0'));
  data.remove_prefix(std::min(data.size(), string.size() + 1));
  return string;
}

// tEXt: keyword, 0, text
// zTXt: keyword, 0, method, deflated text
// iTXt: keyword, 0, 1 if deflated, method, language, 0, translated keyword, 0, text
Text split_text(char kind, std::string_view data) {
  Text text;
  text.keyword = cut_string(data);
  if (kind == 't') text.text = data;
  if (kind == 'z' && data.size() >= 1) {
    text.deflated = true;
    text.text = data.substr(1);
  }
  if (kind == 'i' && data.size() >= 2) {
    text.deflated = data[0] != 0;
    data.remove_prefix(2);
    cut_string(data);
    cut_string(data);
    text.text = data;
  }
  return text;
}

/// Empty if the stream is corrupt or its text too long: Pillow refuses images with longer texts.
std::string inflate_text(std::string_view deflated) {
  constexpr std::size_t kMaxText = std::size_t{1} << 20;
  std::string text(kMaxText, '\0');
  uLongf size = kMaxText;
  const int status =
      uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                 reinterpret_cast<const Bytef*>(deflated.data()), static_cast<uLong>(deflated.size()));
  text.resize(status == Z_OK ? size : 0);
  return text;
}

/// The bytes of a raw profile, which ImageMagick writes as text: an empty line, name and length, then
/// hexadecimal digits. Empty for anything else.
std::vector<std::uint8_t> read_raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  int upper = -1;
  for (const char c : text) {
    if (c == '\n' || c == ' ') continue;
    const int digit = hexadecimal_digit(c);
    if (digit < 0) return {};
    if (upper >= 0) bytes.push_back(static_cast<std::uint8_t>(16 * upper + digit));
    upper = upper >= 0 ? -1 : digit;
  }
  return bytes;
}

/// The orientation in the chunks. The last of several chunks of a kind is used.
class Notes {
 public:
  void read_exif(std::span<const std::uint8_t> data) { exif_ = exif_orientation(data); }
  /// The kind is the first letter of the chunk's type.
  void read_text(char kind, std::span<const std::uint8_t> data) {
    const Text text = split_text(kind, {reinterpret_cast<const char*>(data.data()), data.size()});
    const bool is_profile = text.keyword == "Raw profile type exif";
    if (!is_profile && text.keyword != "XML:com.adobe.xmp") return;
    constexpr int kMaxInflated = 64;  // a megabyte each
    if (text.deflated && ++num_inflated_ > kMaxInflated) return;
    const std::string inflated = text.deflated ? inflate_text(text.text) : std::string();
    const std::string_view content = text.deflated ? inflated : text.text;
    if (content.empty()) return;
    if (is_profile) {
      profile_ = exif_orientation(read_raw_profile(content));
    } else {
      xmp_ = xmp_orientation({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
    }
  }
  /// A raw profile is used if there is no eXIf, XMP if neither has an orientation.
  int orientation() const {
    const int exif = exif_.value_or(profile_);
    return exif != 0 ? exif : xmp_ != 0 ? xmp_ : 1;
  }

 private:
  std::optional<int> exif_;
  int profile_ = 0;
  int xmp_ = 0;
  int num_inflated_ = 0;
};

struct Headers {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int orientation = 1;
};

// IHDR comes first by definition; eXIf may come before or after the pixels.
Headers read_headers(const Source& source) {
  constexpr std::size_t kFirstChunk = 8;
  const auto bytes = source.bytes;
  const auto is_chunk = [&](std::size_t at, const char* type) {
    return std::memcmp(bytes.data() + at + 4, type, 4) == 0;
  };
  if (bytes.size() < kFirstChunk + 25 || !is_chunk(kFirstChunk, "IHDR"))
    refuse(source, "truncated PNG: no whole header");
  Headers headers;
  headers.width = be32(bytes.data() + kFirstChunk + 8);
  headers.height = be32(bytes.data() + kFirstChunk + 12);
  Notes notes;
  for (std::size_t at = kFirstChunk; at + 12 <= bytes.size();) {
    const std::size_t length = be32(bytes.data() + at);
    if (length > bytes.size() - at - 12) break;
    const auto data = bytes.subspan(at + 8, length);
    if (is_chunk(at, "eXIf")) notes.read_exif(data);
    if (is_chunk(at, "tEXt") || is_chunk(at, "zTXt") || is_chunk(at, "iTXt"))
      notes.read_text(static_cast<char>(bytes[at + 4]), data);
    if (is_chunk(at, "IEND")) break;
    at += length + 12;
  }
  headers.orientation = notes.orientation();
  return headers;
}

/// How samples are converted to R, G, B and alpha.
struct Layout {
  int color_type = 0;
  int depth = 0;
  std::size_t channels = 0;
  std::array<std::array<std::uint8_t, 3>, 256> palette{};
  std::array<std::uint8_t, 256> palette_alpha{};
  bool has_alpha = false;  // channel, palette alpha or transparent color
  bool has_transparent_color = false;
  std::array<std::uint32_t, 3> transparent{};
};

class PngRows final : public RowSource {
 public:
  PngRows(const Source& source, const Headers& headers)
      : source_(source), headers_(headers), columns_{0, headers.width} {
    png_.rest = source.bytes;
    png_.state = png_create_read_struct(PNG_LIBPNG_VER_STRING, &png_, on_png_error, on_png_warning);
    VIT_CHECK(png_.state != nullptr, kDecode.with(ErrorKind::io), source.name,
              ": libpng cannot be initialized");
    png_.info = png_create_info_struct(png_.state);
  }
  ~PngRows() override { png_destroy_read_struct(&png_.state, &png_.info, nullptr); }

  ImageSize size() const override { return {headers_.height, headers_.width}; }
  int orientation() const override { return headers_.orientation; }

  ColumnRange start(ColumnRange wanted) override {
    guarded(source_, png_, [&] {
      png_set_read_fn(png_.state, &png_, read_png);
      png_set_user_limits(png_.state, 0x7FFFFFFF, 0x7FFFFFFF);  // check_size() has already checked
      // Texts and profiles would be inflated and kept, a thousand times as large as in the file.
      // Only the orientation in them is needed, and read_headers() has it.
      png_set_keep_unknown_chunks(png_.state, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_crc_action(png_.state, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
      png_read_info(png_.state, png_.info);
      png_set_packing(png_.state);
    });
    if (png_get_image_width(png_.state, png_.info) != headers_.width ||
        png_get_image_height(png_.state, png_.info) != headers_.height) {
      refuse(source_, "corrupt PNG: two headers of different sizes");
    }
    check_length(headers_);
    guarded(source_, png_, [&] {
      num_passes_ = png_set_interlace_handling(png_.state);
      png_read_update_info(png_.state, png_.info);
    });
    read_layout();
    row_bytes_ = png_get_rowbytes(png_.state, png_.info);
    // An interlaced image is decoded in passes that fill all rows; otherwise one row is enough.
    const std::size_t num_rows = num_passes_ == 1 ? 1 : headers_.height;
    raw_ = within_memory(source_, [&] { return Tensor<std::uint8_t>(Shape{num_rows, row_bytes_}); });
    for (int pass = 0; pass + 1 < num_passes_; ++pass) {
      for (std::size_t y = 0; y < headers_.height; ++y) read_row(raw_.data() + y * row_bytes_);
    }
    return columns_ = wanted;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    for (std::size_t y = 0; y < count; ++y) map_row(next_row(), rows + y * 3 * columns_.count());
  }
  void skip(std::size_t count) override {
    for (; count > 0; --count) next_row();
  }
  void finish() override { skip(headers_.height - next_y_); }

 private:
  void read_row(std::uint8_t* row) {
    guarded(source_, png_, [&] { png_read_row(png_.state, row, nullptr); });
  }
  const std::uint8_t* next_row() {
    std::uint8_t* const row = raw_.data() + (num_passes_ == 1 ? 0 : next_y_ * row_bytes_);
    read_row(row);
    ++next_y_;
    return row;
  }

  /// libpng clears two rows before it reads data, and a row may be the whole image.
  void check_length(const Headers& headers) const {
    constexpr std::size_t kMaxRatio = 1032;  // of deflate: a match of 258 bytes takes at least 2 bits
    const std::size_t pixel_bytes =
        checked_mul(png_get_rowbytes(png_.state, png_.info), headers.height, kDecode);
    if (pixel_bytes / kMaxRatio > source_.bytes.size())
      refuse(source_, "truncated PNG: ", source_.bytes.size(), " bytes cannot contain the pixels");
  }

  void read_layout() {
    layout_.color_type = png_get_color_type(png_.state, png_.info);
    layout_.depth = png_get_bit_depth(png_.state, png_.info);
    if (original_depth() < 8) layout_.depth = original_depth();
    layout_.channels = png_get_channels(png_.state, png_.info);
    layout_.has_alpha = (layout_.color_type & PNG_COLOR_MASK_ALPHA) != 0;
    if (layout_.color_type == PNG_COLOR_TYPE_PALETTE) {
      png_colorp colors = nullptr;
      int count = 0;
      if (png_get_PLTE(png_.state, png_.info, &colors, &count) == 0)
        refuse(source_, "corrupt PNG: no palette");
      for (std::size_t i = 0; i < static_cast<std::size_t>(std::min(count, 256)); ++i) {
        layout_.palette[i] = {colors[i].red, colors[i].green, colors[i].blue};
      }
    }
    png_bytep alpha = nullptr;
    int count = 0;
    png_color_16p color = nullptr;
    if (png_get_tRNS(png_.state, png_.info, &alpha, &count, &color) == 0) return;
    layout_.has_alpha = true;
    if (layout_.color_type == PNG_COLOR_TYPE_PALETTE) {
      layout_.palette_alpha.fill(255);
      std::copy_n(alpha, std::min(count, 256), layout_.palette_alpha.begin());
    } else if (color != nullptr) {
      layout_.has_transparent_color = true;
      layout_.transparent = layout_.color_type == PNG_COLOR_TYPE_GRAY
                                ? std::array<std::uint32_t, 3>{color->gray, color->gray, color->gray}
                                : std::array<std::uint32_t, 3>{color->red, color->green, color->blue};
    }
  }

  // IHDR keeps the stored depth; png_set_packing changes what the info structure says.
  int original_depth() const { return source_.bytes[24]; }

  std::uint32_t sample(const std::uint8_t* row, std::size_t index) const {
    return layout_.depth == 16 ? be16(row + 2 * index) : row[index];
  }

  /// A gray sample after Pillow's conversion to RGB: 16 bits are clamped to 255, fewer bits are scaled to
  /// 0..255.
  std::uint8_t grey_level(std::uint32_t value) const {
    switch (layout_.depth) {
      case 1: return value != 0 ? 255 : 0;
      case 2: return static_cast<std::uint8_t>(value * 85);
      case 4: return static_cast<std::uint8_t>(value * 17);
      case 8: return static_cast<std::uint8_t>(value);
      default: return static_cast<std::uint8_t>(std::min<std::uint32_t>(value, 255));
    }
  }

  void map_row(const std::uint8_t* row, std::uint8_t* rgb) const {
    if (layout_.color_type == PNG_COLOR_TYPE_RGB && layout_.depth == 8 && !layout_.has_alpha) {
      std::copy_n(row + 3 * columns_.begin, 3 * columns_.count(), rgb);
      return;
    }
    const bool on_white = layout_.has_alpha && source_.alpha == Alpha::on_white;
    const std::uint32_t shift = layout_.depth == 16 ? 8 : 0;
    for (std::size_t x = columns_.begin; x < columns_.end; ++x, rgb += 3) {
      const std::size_t first = x * layout_.channels;
      const std::uint32_t v = sample(row, first);
      std::uint8_t opacity = 255;
      switch (layout_.color_type) {
        case PNG_COLOR_TYPE_PALETTE:
          std::copy_n(layout_.palette[v].data(), 3, rgb);
          if (layout_.has_alpha) opacity = layout_.palette_alpha[v];
          break;
        case PNG_COLOR_TYPE_GRAY:
          std::fill_n(rgb, 3, grey_level(v));
          if (layout_.has_transparent_color && v == layout_.transparent[0]) opacity = 0;
          break;
        case PNG_COLOR_TYPE_GRAY_ALPHA:
          std::fill_n(rgb, 3, static_cast<std::uint8_t>(v >> shift));
          opacity = static_cast<std::uint8_t>(sample(row, first + 1) >> shift);
          break;
        default: {
          bool transparent = layout_.has_transparent_color;
          for (std::size_t c = 0; c < 3; ++c) {
            const std::uint32_t value = sample(row, first + c);
            rgb[c] = static_cast<std::uint8_t>(value >> shift);
            transparent = transparent && value == layout_.transparent[c];
          }
          if (layout_.channels == 4) opacity = static_cast<std::uint8_t>(sample(row, first + 3) >> shift);
          if (transparent) opacity = 0;
        }
      }
      if (on_white) composite_on_white(rgb, opacity);
    }
  }

  Source source_;
  Headers headers_;
  Png png_;
  Layout layout_;
  int num_passes_ = 1;
  std::size_t row_bytes_ = 0;
  Tensor<std::uint8_t> raw_;  // one row as stored, or all of an interlaced image
  std::size_t next_y_ = 0;
  ColumnRange columns_;  // of the rows
};

}  // namespace

std::unique_ptr<RowSource> open_png(const Source& source) {
  const Headers headers = read_headers(source);
  check_size(source, headers.width, headers.height);
  return std::make_unique<PngRows>(source, headers);
}

Decoded decode_png(const Source& source) {
  return decode_rows(*open_png(source));
}

}  // namespace vit::internal::codecs
