// Windows and OS/2 bitmaps as Pillow reads them: 1, 4, 8, 16, 24 and 32 bits, palettes, bit fields, run
// lengths; with the file header, without it (.dib), and inside an icon.
#include <algorithm>

#include "vit/image/codecs.h"
#include "vit/image/convert.h"

namespace vit::internal::codecs {

namespace {

enum Compression : std::uint32_t { kRaw = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3 };

/// The bits of the channels in a pixel of 16 or 32 bits.
struct Masks {
  std::uint32_t red = 0;
  std::uint32_t green = 0;
  std::uint32_t blue = 0;
  std::uint32_t alpha = 0;
  bool operator==(const Masks&) const = default;
};

constexpr Masks kFields555{0x7C00, 0x3E0, 0x1F, 0};
constexpr Masks kFields565{0xF800, 0x7E0, 0x1F, 0};
constexpr Masks kFields888{0xFF0000, 0xFF00, 0xFF, 0};
constexpr Masks kFields8888{0xFF0000, 0xFF00, 0xFF, 0xFF000000};

struct Header {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  bool top_down = false;
  std::uint32_t bits = 0;
  std::uint32_t compression = kRaw;
  Masks masks;
  std::size_t pixels = 0;  // offset of the pixel data
  std::vector<std::array<std::uint8_t, 3>> palette;
};

class Bytes {
 public:
  explicit Bytes(const Source& source) : source_(source) {}
  const std::uint8_t* at(std::size_t offset, std::size_t count) const {
    const std::size_t size = source_.bytes.size();
    if (offset > size || count > size - offset)
      refuse(source_, "truncated BMP: the data end before the image does");
    return source_.bytes.data() + offset;
  }

 private:
  const Source& source_;
};

bool known_fields(std::uint32_t bits, const Masks& masks) {
  if (bits == 16) return masks == kFields555 || masks == kFields565;
  if (bits == 24) return masks == kFields888;
  if (bits != 32) return false;
  for (const Masks& known :
       {kFields888, kFields8888, Masks{0xFF000000, 0xFF0000, 0xFF00, 0}, Masks{0xFF000000, 0xFF00, 0xFF, 0},
        Masks{0xFF000000, 0xFF0000, 0xFF00, 0xFF}, Masks{0xFF, 0xFF00, 0xFF0000, 0xFF000000},
        Masks{0xFF000000, 0xFF00, 0xFF, 0xFF0000}}) {
    if (masks == known) return true;
  }
  return masks == Masks{};
}

// Returns where the palette starts. `start` is that of the information header.
std::size_t read_masks(const Source& source, const Bytes& bytes, std::size_t start, std::size_t info_bytes,
                       Header& header) {
  std::size_t end = start + info_bytes;
  if (header.compression != kBitFields) {
    header.masks = header.bits == 16 ? kFields555 : kFields888;
    return end;
  }
  const std::uint8_t* const fields = bytes.at(start + 40, 12);
  header.masks = {le32(fields), le32(fields + 4), le32(fields + 8), 0};
  if (info_bytes >= 56 && header.bits == 32) header.masks.alpha = le32(bytes.at(start + 52, 4));
  if (info_bytes == 40) end += 12;
  if (!known_fields(header.bits, header.masks))
    refuse_unsupported(source, "BMP with unusual bit fields is not supported");
  if (header.masks == Masks{}) header.masks = kFields8888;
  return end;
}

void read_palette(const Source& source, const Bytes& bytes, std::size_t at, std::size_t entry_bytes,
                  std::size_t count, Header& header) {
  if (count == 0 || count > 65536)
    refuse_unsupported(source, "BMP with a palette of ", count, " colors is not supported");
  const std::uint8_t* const entries = bytes.at(at, count * entry_bytes);
  header.palette.assign(256, {0, 0, 0});
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 256); ++i) {
    const std::uint8_t* const bgr = entries + i * entry_bytes;
    header.palette[i] = {bgr[2], bgr[1], bgr[0]};
  }
  // Pillow takes one black color for black and white.
  if (count == 1 && header.bits == 1 && header.palette[0] == std::array<std::uint8_t, 3>{0, 0, 0})
    header.palette[1] = {255, 255, 255};
}

/// The container of a bitmap: a file, a file without the file header (.dib), or an icon, in which
/// the rows of a mask follow and are included in its height.
enum class BitmapKind { file, headless, icon };

Header read_header(const Source& source, const Bytes& bytes, BitmapKind kind) {
  Header header;
  const std::size_t start = kind == BitmapKind::file ? 14 : 0;
  const std::size_t info_bytes = le32(bytes.at(start, 4));
  std::size_t palette_entry = 4;
  std::size_t num_colors = 0;
  if (info_bytes == 12) {
    const std::uint8_t* const info = bytes.at(start, 12);
    header.width = le16(info + 4);
    header.height = le16(info + 6);
    header.bits = le16(info + 10);
    palette_entry = 3;
  } else if (info_bytes == 40 || info_bytes == 52 || info_bytes == 56 || info_bytes == 64 ||
             info_bytes == 108 || info_bytes == 124) {
    const std::uint8_t* const info = bytes.at(start, info_bytes);
    header.width = le32(info + 4);
    header.height = le32(info + 8);
    header.top_down = info[11] == 0xFF;
    if (header.top_down) header.height = 0u - header.height;
    header.bits = le16(info + 14);
    header.compression = le32(info + 16);
    num_colors = le32(info + 32);
  } else {
    refuse_unsupported(source, "BMP with an information header of ", info_bytes, " bytes is not supported");
  }
  if (kind == BitmapKind::icon) header.height /= 2;  // the mask counts as rows
  check_size(source, header.width, header.height);
  const std::uint32_t bits = header.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    refuse_unsupported(source, "BMP with ", bits, " bits per pixel is not supported");
  }
  if (header.compression > kBitFields)
    refuse_unsupported(source, "BMP compression ", header.compression, " is not supported");
  const bool rle = header.compression == kRle8 || header.compression == kRle4;
  if (rle && bits > 8) refuse(source, "corrupt BMP: run lengths of pixels with ", bits, " bits");
  if (header.compression == kBitFields && bits <= 8) refuse(source, "corrupt BMP: bit fields of a palette");

  if (num_colors == 0) num_colors = std::size_t{1} << bits;
  const std::size_t palette_at = read_masks(source, bytes, start, info_bytes, header);
  if (bits <= 8) read_palette(source, bytes, palette_at, palette_entry, num_colors, header);
  if (kind == BitmapKind::file) header.pixels = le32(bytes.at(10, 4));
  // Some files have an offset that omits the palette, or no offset.
  if (header.pixels == start + info_bytes && bits <= 8) header.pixels += palette_entry * num_colors;
  if (header.pixels == 0) header.pixels = palette_at + (bits <= 8 ? palette_entry * num_colors : 0);
  return header;
}

/// Palette indices (H, W), the first row of the file first. Missing pixels at the end are an Error.
std::vector<std::uint8_t> unpack_runs(const Source& source, const Header& header) {
  const std::size_t width = header.width;
  const std::size_t total = width * header.height;
  const auto bytes = source.bytes;
  std::vector<std::uint8_t> out;
  out.reserve(total);
  const bool four = header.compression == kRle4;
  const auto append = [&](std::uint8_t byte, bool upper) {
    out.push_back(four ? static_cast<std::uint8_t>(upper ? byte >> 4 : byte & 15) : byte);
  };
  std::size_t x = 0;
  std::size_t at = header.pixels;
  while (out.size() < total && at + 2 <= bytes.size()) {
    const std::size_t run = bytes[at];
    const std::uint8_t value = bytes[at + 1];
    at += 2;
    if (run != 0) {
      const std::size_t count = std::min(run, width - std::min(x, width));
      for (std::size_t i = 0; i < count; ++i) append(value, i % 2 == 0);
      x += count;
    } else if (value == 0) {  // end of line
      while (out.size() % width != 0) out.push_back(0);
      x = 0;
    } else if (value == 1) {  // end of image
      break;
    } else if (value == 2) {  // move right and up
      if (at + 2 > bytes.size()) break;
      const std::size_t jump = bytes[at] + bytes[at + 1] * width;
      at += 2;
      out.resize(out.size() + std::min(jump, total - out.size()), 0);
      x = out.size() % width;
    } else {  // literal pixels, padded to 16 bits
      const std::size_t count = std::min<std::size_t>(value, total - out.size());
      const std::size_t num_bytes = four ? (count + 1) / 2 : count;
      if (num_bytes > bytes.size() - at) break;
      for (std::size_t i = 0; i < count; ++i) append(bytes[at + (four ? i / 2 : i)], i % 2 == 0);
      at += num_bytes;
      x += value;
      at += at % 2;
    }
  }
  if (out.size() < total)
    refuse(source, "truncated BMP: run lengths end after ", out.size(), " of ", total, " pixels");
  out.resize(total);
  return out;
}

std::uint8_t channel(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 255;
  const int shift = std::countr_zero(mask);
  const std::uint32_t most = mask >> shift;
  const std::uint32_t value = (pixel & mask) >> shift;
  return static_cast<std::uint8_t>(most == 255 ? value : value * 255 / most);
}

void map_row(const Header& header, const std::uint8_t* in, ColumnRange columns, std::uint8_t* rgb) {
  const std::size_t per_byte = header.bits <= 8 ? 8 / header.bits : 1;
  for (std::size_t x = columns.begin; x < columns.end; ++x, rgb += 3) {
    if (header.bits <= 8) {
      const std::size_t place = per_byte - 1 - x % per_byte;
      const std::size_t index =
          static_cast<std::size_t>(in[x / per_byte] >> (place * header.bits)) & ((1u << header.bits) - 1);
      std::copy_n(header.palette[index].data(), 3, rgb);
    } else if (header.bits == 24) {
      std::reverse_copy(in + 3 * x, in + 3 * x + 3, rgb);
    } else {
      const std::uint32_t pixel = header.bits == 16 ? le16(in + 2 * x) : le32(in + 4 * x);
      rgb[0] = channel(pixel, header.masks.red);
      rgb[1] = channel(pixel, header.masks.green);
      rgb[2] = channel(pixel, header.masks.blue);
    }
  }
}

class BmpRows final : public RowSource {
 public:
  BmpRows(const Source& source, BitmapKind kind)
      : source_(source), bytes_(source_), header_(read_header(source_, bytes_, kind)) {}

  /// Offset of the pixels in the source.
  std::size_t pixels() const { return header_.pixels; }

  ImageSize size() const override { return {header_.height, header_.width}; }
  int orientation() const override { return 1; }

  ColumnRange start(ColumnRange wanted) override {
    if (has_runs()) {
      indices_ = within_memory(source_, [&] { return unpack_runs(source_, header_); });
    } else {
      stored_row(header_.height - 1);  // the file contains it and all before it
    }
    return columns_ = wanted;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    const bool on_white = header_.bits == 32 && header_.masks.alpha != 0 && source_.alpha == Alpha::on_white;
    for (std::uint8_t* const end = rows + 3 * columns_.count() * count; rows != end; ++next_y_) {
      const std::size_t stored_y = header_.top_down ? next_y_ : header_.height - 1 - next_y_;
      if (has_runs()) {
        for (std::size_t x = columns_.begin; x < columns_.end; ++x, rows += 3)
          std::copy_n(header_.palette[indices_[stored_y * header_.width + x]].data(), 3, rows);
        continue;
      }
      const std::uint8_t* const row = stored_row(stored_y);
      map_row(header_, row, columns_, rows);
      for (std::size_t x = columns_.begin; x < columns_.end; ++x, rows += 3) {
        if (on_white) composite_on_white(rows, channel(le32(row + 4 * x), header_.masks.alpha));
      }
    }
  }
  void skip(std::size_t count) override { next_y_ += count; }
  void finish() override {}

 private:
  bool has_runs() const { return header_.compression == kRle8 || header_.compression == kRle4; }
  const std::uint8_t* stored_row(std::size_t y) const {
    const std::size_t stride = (std::size_t{header_.width} * header_.bits + 31) / 32 * 4;
    // The padding of the last row may be missing.
    return bytes_.at(header_.pixels + y * stride, (std::size_t{header_.width} * header_.bits + 7) / 8);
  }

  Source source_;
  Bytes bytes_;
  Header header_;
  std::vector<std::uint8_t> indices_;  // (H, W) into the palette, if stored as run lengths
  ColumnRange columns_;                // of the rows
  std::size_t next_y_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> open_bmp(const Source& source) {
  return std::make_unique<BmpRows>(source, BitmapKind::file);
}

Decoded decode_bmp(const Source& source) {
  return decode_rows(*open_bmp(source));
}

Decoded decode_dib(const Source& source) {
  BmpRows rows(source, BitmapKind::headless);
  return decode_rows(rows);
}

IconBitmap decode_icon_bitmap(const Source& source) {
  BmpRows rows(source, BitmapKind::icon);
  return {.image = decode_rows(rows).image, .pixels = rows.pixels()};
}

}  // namespace vit::internal::codecs
