#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/io/json.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string digest(const vit::Image& image) {
  return vit::test::sha256(image.data(), image.height() * image.row_stride());
}

vit::Image decode(const Bytes& bytes, const vit::DecodeOptions& options = {}) {
  return vit::decode_bytes(std::as_bytes(std::span(bytes)), options, "memory");
}

/// What the Error of decoding says; "" if there is none.
std::string refusal(const Bytes& bytes) {
  return vit::test::message_of([&] { decode(bytes); });
}

Bytes text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int> pixel(const vit::Image& image, std::size_t x, std::size_t y) {
  const std::uint8_t* const rgb = image.row(y) + 3 * x;
  return {rgb[0], rgb[1], rgb[2]};
}

/// The start of a PNG that announces width x height.
Bytes png_header(std::uint32_t width, std::uint32_t height) {
  Bytes bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  for (const std::uint32_t value : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
  for (const int value : {8, 2, 0, 0, 0, 0, 0, 0, 0}) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

}  // namespace

TEST_CASE("image: every container of the reference set is decoded as Pillow does") {
  SKIP_WITHOUT_SHARED("fixtures/preprocess");
  const std::filesystem::path folder = vit::test::shared_path("fixtures/preprocess");
  const vit::internal::Json files = vit::internal::load_json(folder / "decode.json");
  std::size_t num_equal = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const vit::internal::Json expected = files[i];
    const std::string name(expected.key());
    CAPTURE(name);
    const auto path = folder / "decode" / name;
    if (expected.find("error")) {
      CHECK_THROWS_WITH_AS(vit::decode_file(path), doctest::Contains(name.c_str()), vit::Error);
      continue;
    }
    const vit::Image image = vit::decode_file(path);
    CHECK(image.width() == expected.at("size")[0].as_size());
    CHECK(image.height() == expected.at("size")[1].as_size());
    CHECK(digest(image) == expected.at("sha256").as_string());
    ++num_equal;
  }
  CHECK(num_equal == 49);
}

TEST_CASE("image: a decoded file cut anywhere is an Error or an image, never a crash") {
  SKIP_WITHOUT_SHARED("fixtures/preprocess/decode");
  const std::filesystem::path folder = vit::test::shared_path("fixtures/preprocess/decode");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Bytes whole = read_bytes(entry.path());
    for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 150) {
      CAPTURE(entry.path().filename().string());
      const std::string message = refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
      CHECK((message.empty() || vit::test::contains(message, "memory: ")));
    }
    CHECK(!refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2)}).empty());
  }
}

TEST_CASE("image: no file, empty files and other files are Errors that say so") {
  CHECK_ERROR(vit::ErrorKind::io, ("/no/such/image.png"), vit::decode_file("/no/such/image.png"));
  CHECK_ERROR(vit::ErrorKind::io, ("/: "), vit::decode_file("/"));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode({}));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("this is no image\n")));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode({0, 1, 2, 3, 250, 251, 252}));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "PDF"), decode(text_bytes("%PDF-1.7....")));
  const auto check_short = [](const Bytes& bytes, const char* format) {
    const std::string message = refusal(bytes);  // ... or this build has no library for it
    CAPTURE(message);
    CHECK(vit::test::contains(message, "memory: "));
    CHECK(vit::test::contains(message, format));
  };
  check_short(text_bytes("GIF89a......"), "GIF");
  check_short({0, 0, 0, 32, 'f', 't', 'y', 'p', 'a', 'v', 'i', 'f', 0, 0}, "AVIF");
  check_short({0, 0, 0, 32, 'f', 't', 'y', 'p', 'h', 'e', 'i', 'c', 0, 0}, "HEIF");
}

TEST_CASE("image: a file whose name is not ASCII") {
  const vit::test::TemporaryFolder folder;
  const std::filesystem::path original = vit::test::data_path("images/cat_grey.png");
  const std::filesystem::path named = folder.path() / u8"K\u00e4tzchen \u732b.png";
  std::filesystem::copy_file(original, named);
  CHECK(digest(vit::decode_file(named)) == digest(vit::decode_file(original)));
}

TEST_CASE("image: headers that announce too much are refused before memory is allocated") {
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "60000 x 60000"), decode(png_header(60000, 60000)));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"), decode(png_header(0xFFFFFFFF, 0xFFFFFFFF)));
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "0 x 5"), decode(png_header(0, 5)));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "9999"),
              decode(png_header(100, 100), {.max_pixels = 9999}));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"), decode(text_bytes("P5 60000 60000 255\n")));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("P6 10000 10000 255\n")));
  // SOI, SOF0 with 65500 x 65500, SOS
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"),
              decode({0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8,    0xFF, 0xDC, 0xFF, 0xDC, 3, 1,
                      0x11, 0,    2,    0x11, 0, 3,  0x11, 0,    0xFF, 0xDA, 0,    2}));
  Bytes bitmap(54, 0);
  bitmap[0] = 'B';
  bitmap[1] = 'M';
  bitmap[14] = 40;
  bitmap[20] = bitmap[24] = 1;  // 65536 x 65536
  bitmap[28] = 24;
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"), decode(bitmap));
}

TEST_CASE("image: portable maps, plain and binary") {
  const vit::Image grey = decode(text_bytes("P2\n# a comment\n3 1\n15\n0 7 15\n"));
  CHECK(pixel(grey, 0, 0) == std::vector<int>{0, 0, 0});
  CHECK(pixel(grey, 1, 0) == std::vector<int>{119, 119, 119});
  CHECK(pixel(grey, 2, 0) == std::vector<int>{255, 255, 255});
  const vit::Image bits = decode(text_bytes("P1 2 2 01\n1 0"));
  CHECK(pixel(bits, 0, 0) == std::vector<int>{255, 255, 255});
  CHECK(pixel(bits, 1, 0) == std::vector<int>{0, 0, 0});
  CHECK(pixel(bits, 0, 1) == std::vector<int>{0, 0, 0});
  const vit::Image colors = decode(text_bytes("P6 1 1 255\nabc"));
  CHECK(pixel(colors, 0, 0) == std::vector<int>{'a', 'b', 'c'});
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("P6 1 1 255\nab")));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("P3 1 1 9\n1 2 10")));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("P3 1 1 0\n1 2 3")));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("P2 2 1 9\n1 x")));
}

TEST_CASE("image: float maps, the lowest row first, in the byte order that the sign of the scale gives") {
  const std::string little("\0\0\x80\x3F\0\0\0\x41", 8), big("\x3F\x80\0\0\x41\0\0\0", 8);  // 1 and 8
  for (const std::string& file : {"Pf\n1 2\n-1.0\n" + little, "Pf 1 2 3e2\n" + big}) {
    const vit::Image image = decode(text_bytes(file));
    CHECK(pixel(image, 0, 0) == std::vector<int>{8, 8, 8});
    CHECK(pixel(image, 0, 1) == std::vector<int>{1, 1, 1});
  }
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "scale"), decode(text_bytes("Pf 1 2 0\n" + little)));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(text_bytes("Pf 1 2 x\n" + little)));
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "truncated"), decode(text_bytes("Pf 1 3 -1\n" + little)));
}

TEST_CASE("image: a bitmap of one bit whose palette is one black color is black and white") {
  Bytes bitmap = text_bytes("BM");
  bitmap.resize(62, 0);
  bitmap[10] = 58;              // offset of the pixels: headers and one color
  bitmap[14] = 40;              // bytes of the information header
  bitmap[18] = 2;               // width
  bitmap[22] = bitmap[26] = 1;  // height, planes
  bitmap[28] = 1;               // bits
  bitmap[46] = 1;               // colors
  bitmap[58] = 0x40;            // 0, 1
  const vit::Image image = decode(bitmap);
  CHECK(pixel(image, 0, 0) == std::vector<int>{0, 0, 0});
  CHECK(pixel(image, 1, 0) == std::vector<int>{255, 255, 255});
  bitmap[54] = 9;  // blue: no gray, and the second color is missing
  CHECK(pixel(decode(bitmap), 0, 0) == std::vector<int>{0, 0, 9});
  CHECK(pixel(decode(bitmap), 1, 0) == std::vector<int>{0, 0, 0});
}

TEST_CASE("image: icons without a whole image or mask are Errors") {
  Bytes icon = read_bytes(vit::test::data_path("golden/preprocess/decode/bitmap.ico"));
  CHECK(refusal(icon).empty());
  Bytes none = icon;
  none[4] = none[5] = 0;
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "no image"), decode(none));
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "list"), decode({icon.begin(), icon.begin() + 20}));
  for (std::size_t at : {std::size_t{6 + 12}, std::size_t{6 + 16 + 12}}) {  // both images beyond the end
    for (std::size_t i = 0; i < 4; ++i) icon[at + i] = 0x7F;
  }
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "truncated icon"), decode(icon));
}

TEST_CASE("image: formats that are not read are named, with the reason") {
  using namespace std::string_literals;
  struct Refused {
    const char* name;
    std::string start;
  };
  const std::vector<Refused> files{
      {"TGA", "\0\0\2\0\0\0\0\0\0\0\0\0\4\0\4\0\x18\0"s},     // colors
      {"TGA", "\0\1\1\0\0\0\1\x18\0\0\0\0\4\0\4\0\x8\x20"s},  // a palette
      {"TGA", "\7\0\x0B\0\0\0\0\0\0\0\0\0\1\0\1\0\x8\0"s},    // gray in runs
      {"PCX", "\x0A\5\1\x8"s},
      {"SGI", "\1\xDA\0\1"s},
      {"QOI", "qoif\0\0\0\4"s},
      {"JPEG XL", "\xFF\x0A\0\0"s},
      {"Windows cursor", "\0\0\2\0\1\0\x20\x20"s},
      {"PSD", "8BPS"s},
      {"OpenEXR", "\x76\x2F\x31\x01"s},
  };
  for (const Refused& file : files) {
    CAPTURE(file.name);
    std::string bytes = file.start;
    bytes.resize(64);
    CHECK_ERROR(vit::ErrorKind::unsupported, ("picture", file.name, "not supported (", "PNG"),
                vit::decode_bytes(std::as_bytes(std::span(bytes)), {}, "picture"));
  }
}
