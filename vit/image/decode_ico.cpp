// Windows icons as Pillow reads them: the largest image of the file, among equally large ones that with the
// fewest bits. It is a PNG file, or a bitmap with a mask.
#include <algorithm>
#include <bit>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

constexpr std::size_t kHeaderBytes = 6;
constexpr std::size_t kEntryBytes = 16;

/// One entry of the directory.
struct Entry {
  std::size_t num_pixels = 0;
  std::uint32_t bits = 0;   // as stored
  std::uint32_t depth = 0;  // sort key
  std::size_t num_bytes = 0;
  std::size_t offset = 0;
};

Entry read_entry(const std::uint8_t* line) {
  const auto edge = [](std::uint8_t value) { return value == 0 ? std::size_t{256} : value; };
  Entry entry{.num_pixels = edge(line[0]) * edge(line[1]),
              .bits = le16(line + 6),
              .depth = le16(line + 6),
              .num_bytes = le32(line + 8),
              .offset = le32(line + 12)};
  constexpr std::uint32_t kUnknownDepth = 256;
  const unsigned num_colors = line[2];
  if (entry.depth == 0 && num_colors > 1)
    entry.depth = static_cast<std::uint32_t>(std::bit_width(num_colors - 1));
  if (entry.depth == 0) entry.depth = kUnknownDepth;
  return entry;
}

Entry choose_entry(const Source& source) {
  const auto bytes = source.bytes;
  const std::size_t count = bytes.size() < kHeaderBytes ? 0 : le16(bytes.data() + 4);
  if (count == 0) refuse(source, "corrupt icon: it has no image");
  if (bytes.size() < kHeaderBytes + count * kEntryBytes)
    refuse(source, "truncated icon: the data end in the list of its images");
  Entry best;
  for (std::size_t i = 0; i < count; ++i) {
    const Entry entry = read_entry(bytes.data() + kHeaderBytes + i * kEntryBytes);
    if (entry.num_pixels > best.num_pixels ||
        (entry.num_pixels == best.num_pixels && entry.depth < best.depth)) {
      best = entry;
    }
  }
  if (best.offset >= bytes.size()) refuse(source, "truncated icon: the data end before the image does");
  return best;
}

/// The mask of one bit for each pixel at the end of the entry: set bits are transparent. Rows are those of
/// a bitmap, the lowest first.
void read_mask(const Source& source, const Entry& entry, Decoded& decoded) {
  const std::size_t width = decoded.image.width();
  const std::size_t height = decoded.image.height();
  const std::size_t row_bytes = (width + 31) / 32 * 4;
  const std::size_t num_bytes = row_bytes * height;
  const std::size_t end = entry.offset + entry.num_bytes;
  if (num_bytes > end || end > source.bytes.size()) refuse(source, "truncated icon: no whole mask");
  const std::uint8_t* const mask = source.bytes.data() + end - num_bytes;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* const row = mask + (height - 1 - y) * row_bytes;
    for (std::size_t x = 0; x < width; ++x)
      decoded.alpha.data()[y * width + x] = ((row[x / 8] >> (7 - x % 8)) & 1) != 0 ? 0 : 255;
  }
}

/// The opacity in every fourth byte of a bitmap of 32 bits; `pixels` are those of the bitmap.
void read_opacity(const Source& source, std::span<const std::uint8_t> pixels, Decoded& decoded) {
  const std::size_t width = decoded.image.width();
  const std::size_t height = decoded.image.height();
  if (pixels.size() / 4 < width * height) refuse(source, "truncated icon: no whole mask");
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* const row = pixels.data() + (height - 1 - y) * width * 4;
    for (std::size_t x = 0; x < width; ++x) decoded.alpha.data()[y * width + x] = row[4 * x + 3];
  }
}

}  // namespace

Decoded decode_ico(const Source& source) {
  const Entry entry = choose_entry(source);
  Source image = source;
  image.bytes = source.bytes.subspan(entry.offset);
  constexpr std::string_view kPng = "\x89PNG\r\n\x1A\n";
  if (std::string_view(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size())
          .starts_with(kPng)) {
    // Of the PNG Pillow takes a channel of opacity, but neither a transparent color nor that of a palette.
    constexpr std::size_t kColorType = 25;
    constexpr unsigned kHasOpacity = 4;
    if (image.bytes.size() > kColorType && (image.bytes[kColorType] & kHasOpacity) == 0)
      image.alpha = Alpha::drop;
    Decoded decoded = decode_png(image);
    decoded.orientation = 1;
    return decoded;
  }
  image.alpha = Alpha::drop;  // the icon defines transparency
  IconBitmap bitmap = decode_icon_bitmap(image);
  Decoded decoded;
  decoded.image = std::move(bitmap.image);
  decoded.alpha = Tensor<std::uint8_t>(Shape{decoded.image.height(), decoded.image.width()});
  constexpr std::uint32_t kBitsWithOpacity = 32;
  if (entry.bits == kBitsWithOpacity) {
    read_opacity(source, image.bytes.subspan(bitmap.pixels), decoded);
  } else {
    read_mask(source, entry, decoded);
  }
  return decoded;
}

}  // namespace vit::internal::codecs
