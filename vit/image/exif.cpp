// The only EXIF entry used here: orientation, in the TIFF structure of a camera's block or in an XMP
// packet.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "vit/base/check.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// The TIFF types whose values Pillow reads as integers.
enum Type : std::uint32_t {
  kShort = 3,
  kLong = 4,
  kSignedByte = 6,
  kSignedShort = 8,
  kSignedLong = 9,
  kDirectory = 13,
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> exif) noexcept {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  const auto starts_with = [&](std::string_view text) {
    return exif.size() >= text.size() &&
           std::equal(text.begin(), text.end(), exif.begin(),
                      [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
  };
  for (int i = 0; i < 2 && starts_with(kPrefix); ++i) exif = exif.subspan(kPrefix.size());
  if (exif.size() < 8) return 0;
  const bool little = starts_with("II");
  if (!little && !starts_with("MM")) return 0;
  const auto u16 = [&](std::size_t at) { return little ? le16(exif.data() + at) : be16(exif.data() + at); };
  const auto u32 = [&](std::size_t at) { return little ? le32(exif.data() + at) : be32(exif.data() + at); };
  constexpr std::uint32_t kTiff = 42;
  if (u16(2) != kTiff) return 0;
  const std::size_t directory = u32(4);
  if (directory > exif.size() || exif.size() - directory < 2) return 0;
  const std::size_t num_entries = u16(directory);
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint8_t kTypeBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
  for (std::size_t i = 0; i < num_entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > exif.size()) return 0;
    const std::uint32_t type = u16(entry + 2);
    const std::uint32_t count = u32(entry + 4);
    if (u16(entry) != kOrientation || type >= std::size(kTypeBytes) || count == 0) continue;
    const std::uint64_t num_bytes = std::uint64_t{count} * kTypeBytes[type];
    const std::size_t at = num_bytes <= 4 ? entry + 8 : u32(entry + 8);
    if (num_bytes == 0 || at > exif.size() || num_bytes > exif.size() - at) continue;
    std::uint32_t value = 0;  // for texts and fractions
    switch (type) {
      case kSignedByte: value = exif[at]; break;
      case kShort:
      case kSignedShort: value = u16(at); break;
      case kLong:
      case kSignedLong:
      case kDirectory: value = u32(at); break;
      default: break;
    }
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 0;
}

int xmp_orientation(std::span<const std::uint8_t> xmp) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(xmp.data()), xmp.size());
  constexpr std::string_view kKey = "tiff:Orientation";
  for (std::size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at + 1)) {
    std::string_view rest = text.substr(at + kKey.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9')
      return rest[0] >= '1' && rest[0] <= '8' ? rest[0] - '0' : 0;
  }
  return 0;
}

}  // namespace vit::internal::codecs
