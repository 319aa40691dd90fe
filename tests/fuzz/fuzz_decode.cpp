// Decodes images of every format that is read, upright, as stored and as rows.
#include "tests/fuzz/fuzz_decode.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/in_memory_file.h"
#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/image/codecs.h"
#include "vit/image/image.h"
#include "vit/image/row_source.h"

namespace vit::fuzz {
namespace {

/// The golden images whose names end like this and that this build reads, smallest first.
std::vector<std::string> golden_images(std::initializer_list<std::string_view> endings) {
  std::vector<std::string> seeds;
  const auto folder = std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "preprocess" / "decode";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::none_of(endings, [&](std::string_view ending) { return name.ends_with(ending); }))
      continue;
    const std::string bytes = test::read_text(entry.path());
    try {
      run_decode(bytes);
      seeds.push_back(bytes);
    } catch (const Error& error) {  // of a library that this build does without
      if (error.kind() != ErrorKind::unsupported) throw;
    }
  }
  std::ranges::sort(seeds, {}, [](const std::string& seed) { return std::pair(seed.size(), seed); });
  return seeds;
}

/// A BMP with header of 40 bytes and these fields.
std::string bmp(std::uint16_t bits, std::uint32_t compression, std::string_view colors,
                std::string_view pixels) {
  using test::raw;
  const std::uint32_t start = static_cast<std::uint32_t>(54 + colors.size());
  return "BM" + raw(static_cast<std::uint32_t>(start + pixels.size())) + raw(std::uint32_t{0}) + raw(start) +
         raw(std::uint32_t{40}) + raw(std::int32_t{4}) + raw(std::int32_t{2}) + raw(std::uint16_t{1}) +
         raw(bits) + raw(compression) + raw(static_cast<std::uint32_t>(pixels.size())) +
         raw(std::uint64_t{0}) + raw(static_cast<std::uint32_t>(bits <= 8 ? colors.size() / 4 : 0)) +
         raw(std::uint32_t{0}) + std::string(colors) + std::string(pixels);
}

constexpr std::size_t kMaxPixels = 1u << 17;  // a mutated size must not fill the memory of the test machine

DecodeOptions small_images(std::string_view input) {
  const bool is_upright = input.size() % 2 == 1;
  return {.orientation = is_upright ? Orientation::apply : Orientation::ignore,
          .alpha = is_upright ? Alpha::on_white : Alpha::drop,
          .max_pixels = kMaxPixels};
}

}  // namespace

void run_decode(std::string_view input) {
  const Image image = decode_bytes(std::as_bytes(std::span(input)), small_images(input), "input");
  if (image.width() == 0 || image.height() == 0 || image.width() * image.height() > kMaxPixels)
    throw std::logic_error("an image of a size that is not allowed");
}

void run_decode_file(std::string_view input) {
  const InMemoryFile file(input);
  const Image image = decode_file(file.path(), small_images(input));
  // libde265 leaves parts of a damaged frame as it found the memory, and libheif has no switch against it.
  if (input.substr(std::min<std::size_t>(4, input.size())).starts_with("ftyp")) return;
  const Image of_bytes = decode_bytes(std::as_bytes(std::span(input)), small_images(input), "input");
  if (image.width() != of_bytes.width() || image.height() != of_bytes.height() ||
      !std::equal(image.data(), image.data() + 3 * image.width() * image.height(), of_bytes.data()))
    throw std::logic_error("a file gives another image than its bytes");
}

/// What decoders give row by row, of the middle of the image, is what the whole image has there.
void run_decode_rows(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  constexpr DecodeOptions kOptions{.max_pixels = std::size_t{1} << 20};
  Image whole;
  std::string failure;
  try {
    whole = decode_bytes(bytes, kOptions, "input");
  } catch (const Error& error) {
    failure = error.what();
  }
  std::string rows_failure;
  try {
    const auto rows = internal::open_rows(bytes, kOptions, "input");
    if (rows == nullptr) return;
    const ImageSize size = rows->size();
    const internal::ColumnRange wanted{size.width / 3, size.width - size.width / 3};
    const internal::ColumnRange held = rows->start(wanted);
    std::vector<std::uint8_t> row(3 * held.count());
    const std::size_t first = size.height / 4;
    const std::size_t end = size.height - size.height / 4;
    rows->skip(first);
    for (std::size_t y = first; y < end; ++y) {
      rows->read(row.data(), 1);
      if (whole.empty()) continue;
      const std::uint8_t* const expected = whole.row(y) + 3 * wanted.begin;
      if (!std::equal(expected, expected + 3 * wanted.count(), row.data() + 3 * (wanted.begin - held.begin)))
        throw std::logic_error("rows differ from the whole image");
    }
    rows->finish();
  } catch (const Error& error) {
    rows_failure = error.what();
  }
  if (rows_failure != failure)
    throw std::logic_error("rows say \"" + rows_failure + "\", the whole image \"" + failure + "\"");
  if (!failure.empty()) fail("decode", failure);
}

std::vector<std::string> decode_seeds() {
  return golden_images({""});
}

std::vector<std::string> jpeg_seeds() {
  return golden_images({".jpg"});
}
std::vector<std::string> png_seeds() {
  return golden_images({".png"});
}
std::vector<std::string> tiff_seeds() {
  return golden_images({".tif"});
}
std::vector<std::string> webp_seeds() {
  return golden_images({".webp"});
}
std::vector<std::string> bmp_seeds() {
  std::vector<std::string> seeds = golden_images({".bmp", ".dib"});
  const std::string colors("\x00\x00\x00\x00\xFF\xFF\xFF\x00\x10\x20\x30\x00\x40\x50\x60\x00", 16);
  const std::string masks("\x00\xF8\x00\x00\xE0\x07\x00\x00\x1F\x00\x00\x00", 12);
  using namespace std::string_view_literals;
  seeds.push_back(bmp(8, 1, colors, "\x03\x01\x01\x02\x00\x00\x00\x04\x00\x01\x02\x03\x00\x01"sv));
  seeds.push_back(bmp(4, 2, colors, "\x04\x12\x00\x00\x00\x04\x01\x23\x00\x01"sv));
  seeds.push_back(bmp(1, 0, colors.substr(0, 8), std::string(8, '\x50')));
  seeds.push_back(bmp(16, 3, masks, std::string(16, '\x5A')));
  seeds.push_back(bmp(32, 0, "", std::string(32, '\x7F')));
  return seeds;
}
std::vector<std::string> ico_seeds() {
  return golden_images({".ico"});
}
std::vector<std::string> pnm_seeds() {
  using namespace std::string_literals;
  std::vector<std::string> seeds = golden_images({".ppm", ".pfm"});
  for (const std::string& seed :
       {"P1 3 2 # bits\n1 0 1 010"s, "P2\n3 2\n15\n1 2 3 4 5 15"s, "P3 1 2 65535 1 2 3 65535 5 6 "s,
        "P4 9 2\n\x01\x02\x03\x04"s, "P5 2 2 255\nabcd"s, "P5 2 1 65535\nabcd"s, "P6 1 2 100\nabcdef"s})
    seeds.push_back(seed);
  return seeds;
}
std::vector<std::string> gif_seeds() {
  return golden_images({".gif"});
}
std::vector<std::string> jpeg2000_seeds() {
  return golden_images({".jp2"});
}
std::vector<std::string> codestream_seeds() {
  std::vector<std::string> seeds = golden_images({".jp2", ".j2k"});
  for (std::string& seed : seeds) seed.erase(0, seed.find("\xFF\x4F\xFF\x51"));
  return seeds;
}
std::vector<std::string> avif_seeds() {
  return golden_images({".avif"});
}
std::vector<std::string> heif_seeds() {
  return golden_images({".heic"});
}

void run_metadata(std::string_view input) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  for (const int orientation :
       {internal::codecs::exif_orientation(bytes), internal::codecs::xmp_orientation(bytes)}) {
    if (orientation < 0 || orientation > 8) throw std::logic_error("an orientation that is none");
  }
  if (input.empty()) fail("metadata", "no bytes");
}

std::vector<std::string> metadata_seeds() {
  using namespace std::string_literals;
  return {
      "Exif\0\0II*\0\x08\0\0\0\x02\0\x0F\x01\x02\0\x04\0\0\0abc\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s,
      "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0"s,
      "<x:xmpmeta><rdf:Description tiff:Orientation=\"8\"/>"s, "<tiff:Orientation>3</tiff:Orientation>"s};
}

}  // namespace vit::fuzz
