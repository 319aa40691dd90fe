// Images made to cost time or memory, and the honest ones next to them. Every file is made here.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/peak_memory.h"
#include "tests/support/picture_bytes.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_memory.h"

namespace {

using vit::test::append;
using vit::test::append_big;
using vit::test::append_chunk;
using vit::test::Bytes;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

vit::Image decode(const Bytes& bytes, const vit::DecodeOptions& options = {}) {
  return vit::decode_bytes(std::as_bytes(std::span(bytes)), options, "memory");
}

/// What the Error of decoding says; "" if there is none.
std::string refusal(const Bytes& bytes) {
  return vit::test::message_of([&] { decode(bytes); });
}

// TIFF

using Tag = std::pair<std::uint32_t, std::uint32_t>;  // number and value, of 32 bits, in ascending order

/// Big endian, the data after the tags; a tag with value kData holds where they start.
constexpr std::uint32_t kData = 0xFFFFFFFF;

Bytes tiff(const std::vector<Tag>& tags, const Bytes& data) {
  Bytes bytes = {'M', 'M', 0, 42, 0, 0, 0, 8};
  append_big(bytes, tags.size(), 2);
  const std::size_t data_at = 8 + 2 + 12 * tags.size() + 4;
  for (const auto& [number, value] : tags) {
    append_big(bytes, number, 2);
    append_big(bytes, 4, 2);
    append_big(bytes, 1, 4);
    append_big(bytes, value == kData ? data_at : value, 4);
  }
  append_big(bytes, 0, 4);
  append(bytes, data);
  return bytes;
}

Bytes grey_strip(std::uint32_t width, std::uint32_t height, std::uint32_t compression, const Bytes& data) {
  return tiff({{256, width},
               {257, height},
               {258, 8},
               {259, compression},
               {262, 1},
               {273, kData},
               {277, 1},
               {278, height},
               {279, static_cast<std::uint32_t>(data.size())}},
              data);
}

Bytes grey_tile(std::uint32_t width, std::uint32_t height, std::uint32_t tile_width,
                std::uint32_t tile_height, const Bytes& data) {
  return tiff({{256, width},
               {257, height},
               {258, 8},
               {259, 1},
               {262, 1},
               {277, 1},
               {322, tile_width},
               {323, tile_height},
               {324, kData},
               {325, static_cast<std::uint32_t>(data.size())}},
              data);
}

// PNG

/// A zlib stream of `count` letters A, 258 to a match: code 285 and distance 1 take 13 bits with fixed codes.
Bytes deflated_letters(std::size_t count) {
  Bytes bytes = {0x78, 0x9C};
  std::uint32_t window = 0;
  int held = 0;
  const auto put = [&](std::uint32_t bits, int num_bits) {
    window |= bits << held;
    for (held += num_bits; held >= 8; held -= 8, window >>= 8)
      bytes.push_back(static_cast<std::uint8_t>(window));
  };
  put(0b011, 3);       // the last block, with fixed codes
  put(0b10001110, 8);  // a literal A, 01110001 with the highest bit first
  for (std::size_t i = 0; i < count / 258; ++i) {
    put(0b10100011, 8);  // 11000101, length 258
    put(0, 5);           // distance 1
  }
  put(0, 7);  // the end
  put(0, 7);
  const std::uint64_t n = 1 + count / 258 * 258;  // Adler-32: 1 + 65 n, and the sum of that for 1 to n
  append_big(bytes, (n + 65 * (n * (n + 1) / 2)) % 65521 << 16 | (1 + 65 * n) % 65521, 4);
  return bytes;
}

// JPEG: grey, progressive, whose scans each leave all AC coefficients at zero.
Bytes jpeg_with_scans(int num_ac_scans, std::uint32_t edge = 8, bool refine = false) {
  Bytes bytes = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  bytes.resize(bytes.size() + 64, 1);
  append(bytes, {0xFF, 0xC2, 0, 11, 8});
  append_big(bytes, edge, 2);
  append_big(bytes, edge, 2);
  append(bytes, {1, 1, 0x11, 0});
  for (const std::uint8_t table : Bytes{0x00, 0x10}) {  // DC and AC: code 0 means 0, no difference or the end
    append(bytes, {0xFF, 0xC4, 0, 20, table, 1});
    bytes.resize(bytes.size() + 15, 0);
    bytes.push_back(0);
  }
  append(bytes, {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0, 0x7F});
  const std::uint8_t precision = refine ? 0x10 : 0;
  for (int i = 0; i < num_ac_scans; ++i) append(bytes, {0xFF, 0xDA, 0, 8, 1, 1, 0, 1, 63, precision, 0x7F});
  append(bytes, {0xFF, 0xD9});
  return bytes;
}

// JPEG 2000

struct J2k {
  std::uint32_t width = 64;
  std::uint32_t height = 64;
  std::uint32_t offset = 0;  // of the image on its grid
  std::uint32_t tile = 0;    // 0 = the image
  std::size_t levels = 5;
  std::uint8_t block = 4;     // exponent - 2 of both edges of a code block
  std::uint8_t precinct = 0;  // exponents of both edges; 0 = none
  std::uint32_t layers = 1;
  std::uint32_t tile_index = 0;
  bool style_in_tile = false;  // the main header has blocks of 64 x 64 and nothing special
  bool has_packets = true;
};

void append_style(Bytes& bytes, const J2k& j2k) {
  const bool precincts = j2k.precinct != 0;
  append(bytes, {0xFF, 0x52});
  append_big(bytes, 12 + (precincts ? j2k.levels + 1 : 0), 2);
  bytes.push_back(precincts ? 1 : 0);
  bytes.push_back(0);
  append_big(bytes, j2k.layers, 2);
  append(bytes, {0, static_cast<std::uint8_t>(j2k.levels), j2k.block, j2k.block, 0, 1});
  if (precincts) bytes.resize(bytes.size() + j2k.levels + 1, j2k.precinct);
}

/// Three components and one tile part that says of all its packets that they are empty, or has none.
Bytes j2k(const J2k& j2k) {
  Bytes bytes = {0xFF, 0x4F, 0xFF, 0x51, 0, 47, 0, 0};
  append_big(bytes, j2k.width, 4);
  append_big(bytes, j2k.height, 4);
  append_big(bytes, j2k.offset, 4);
  append_big(bytes, j2k.offset, 4);
  append_big(bytes, j2k.tile != 0 ? j2k.tile : j2k.width, 4);
  append_big(bytes, j2k.tile != 0 ? j2k.tile : j2k.height, 4);
  append_big(bytes, 0, 8);
  append(bytes, {0, 3, 7, 1, 1, 7, 1, 1, 7, 1, 1});
  append_style(bytes, j2k.style_in_tile ? J2k{.levels = j2k.levels} : j2k);
  append(bytes, {0xFF, 0x5C});
  append_big(bytes, 3 + 1 + 3 * j2k.levels, 2);
  bytes.push_back(0x40);
  bytes.resize(bytes.size() + 1 + 3 * j2k.levels, 0x48);
  Bytes rest;
  if (j2k.style_in_tile) append_style(rest, j2k);
  append(rest, {0xFF, 0x93});
  if (j2k.has_packets) rest.resize(rest.size() + 3 * (j2k.levels + 1) * 4, 0);
  append(bytes, {0xFF, 0x90, 0, 10});
  append_big(bytes, j2k.tile_index, 2);
  append_big(bytes, 12 + rest.size(), 4);
  append(bytes, {0, 1});
  append(bytes, rest);
  append(bytes, {0xFF, 0xD9});
  return bytes;
}

/// What `function` writes to the standard error stream, by whatever way.
template <typename Function>
std::string printed(Function&& function) {
  const vit::test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("stderr", "");
  std::fflush(stderr);
  const int kept = ::dup(STDERR_FILENO);
  const int file = ::open(path.string().c_str(), O_WRONLY);
  ::dup2(file, STDERR_FILENO);
  function();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(file);
  ::close(kept);
  return vit::test::read_text(path);
}

void resize_to_float(const vit::Image& image, vit::ImageSize target,
                     const vit::internal::ResizeWindow& window, vit::ResizeFilter filter,
                     vit::TensorView<float> out) {
  vit::internal::ResizeMemory memory;
  vit::internal::resize_to_float({.data = image.data(),
                                  .height = image.height(),
                                  .width = image.width(),
                                  .row_stride = image.row_stride()},
                                 1.0f / 255.0f, target, window, filter, 1, memory, out);
}

vit::Image random_image(std::size_t height, std::size_t width) {
  vit::Image image(height, width);
  std::mt19937 random(11);
  for (std::size_t i = 0; i < height * width * 3; ++i)
    image.data()[i] = static_cast<std::uint8_t>(random() >> 24);
  return image;
}

}  // namespace

TEST_CASE("image: a TIFF is read with Pillow's compressions only") {
  CHECK(refusal(grey_strip(2, 1, 1, {7, 9})).empty());
  // JBIG data that announce 2^31 - 1 lines end a program that requests them.
  const Bytes endless = {0,    0,    1,    0,    0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF,
                         0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 8,    0,    0,    0};
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "34661"), decode(grey_strip(64, 64, 34661, endless)));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "34887"), decode(grey_strip(2, 1, 34887, {7, 9})));
}

TEST_CASE("image: a TIFF whose palette cannot be read is refused, not taken for a grey one") {
  const Bytes palette = tiff({{256, 2},
                              {257, 1},
                              {258, 8},
                              {259, 1},
                              {262, 3},
                              {273, kData},
                              {277, 1},
                              {278, 1},
                              {279, 2},
                              {320, 0}},
                             {7, 9});
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "ColorMap"), decode(palette));
}

TEST_CASE("image: tiles may be larger than their image, not absurdly larger") {
  Bytes tile(std::size_t{512} * 512);
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<std::uint8_t>(i);
  const vit::Image image = decode(grey_tile(3, 2, 512, 512, tile), {.max_pixels = 6});
  REQUIRE(image.size() == vit::ImageSize{2, 3});
  CHECK(image.row(1)[3] == 1);
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory", "33554432"),
              decode(grey_tile(1, 1, 16, 1u << 25, {0})));
}

// Under the address sanitizer tensors come from operator new and are cleared.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("image: a TIFF that holds no pixels takes no memory for them") {
  const Bytes bytes = grey_strip(13377, 13377, 1, Bytes(100));
  std::string message;
  CHECK(vit::test::peak_growth_bytes([&] { message = refusal(bytes); }) < 32 * kMegabyte);
  CHECK(!message.empty());
}

TEST_CASE("image: a BMP that holds no pixels takes no memory for them") {
  Bytes bytes(14 + 56, 0);
  bytes[0] = 'B';
  bytes[1] = 'M';
  bytes[10] = 14 + 56;
  bytes[14] = 56;
  bytes[18] = bytes[22] = 0x41;  // 13377 x 13377
  bytes[19] = bytes[23] = 0x34;
  bytes[28] = 32;
  bytes[30] = 3;  // bit fields: red, green, blue, alpha
  bytes[56] = bytes[59] = bytes[62] = bytes[69] = 0xFF;
  std::string message;
  CHECK(vit::test::peak_growth_bytes([&] { message = refusal(bytes); }) < 32 * kMegabyte);
  CHECK(!message.empty());
}
#endif

TEST_CASE("image: a PNG that cannot hold its pixels is refused before a row is made") {
  Bytes bytes = vit::test::png_start(178'000'000, 1, 16, 6, 1);  // a row of 1.4 GB, interlaced
  append_chunk(bytes, "IDAT", {0x78, 0x9C, 0x63, 0x10});
  std::string message;
  CHECK(vit::test::peak_growth_bytes([&] { message = refusal(bytes); }) < 32 * kMegabyte);
  CHECK(!message.empty());
}

TEST_CASE("image: texts in a PNG are not inflated") {
  Bytes bytes = vit::test::png_start(1, 1, 8, 0, 0);
  Bytes text = {'k', 0, 0};
  append(text, deflated_letters(7 * kMegabyte));
  for (int i = 0; i < 20; ++i) append_chunk(bytes, "zTXt", text);
  append_chunk(bytes, "IDAT", {0x78, 0x9C, 0x63, 0x10, 0, 0, 0, 0x12, 0, 0x11});  // filter 0, then 16
  append_chunk(bytes, "IEND", {});
  std::string message;
  CHECK(vit::test::peak_growth_bytes([&] { message = refusal(bytes); }) < 32 * kMegabyte);
  CHECK(message == "");
}

// A row of four pixels of two colors; codes of three bits, the lowest first.
TEST_CASE("image: codes of a GIF that nothing defines are refused, and an end before the pixels") {
  const auto gif = [](const std::vector<unsigned>& codes, bool has_end) {
    Bytes bytes = {'G', 'I', 'F', '8', '9', 'a', 4, 0, 1, 0, 0x80, 0, 0, 10, 20, 30,
                   200, 210, 220, ',', 0,   0,   0, 0, 4, 0, 1,    0, 0, 2,  0};
    unsigned bits = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) bits |= codes[i] << (3 * i);
    for (; bits != 0; bits >>= 8, ++bytes.at(30)) bytes.push_back(static_cast<std::uint8_t>(bits));
    if (has_end) append(bytes, {0, ';'});
    return bytes;
  };
  constexpr unsigned kClear = 4, kEnd = 5;
  for (const bool has_end : {true, false}) {  // what follows the pixels is not looked at
    const vit::Image image = decode(gif({kClear, 1, 6, 0}, has_end));  // 6: the pixel before, twice
    CHECK(image.size() == vit::ImageSize{1, 4});
    CHECK(image.row(0)[0] == 200);
    CHECK(image.row(0)[6] == 200);
    CHECK(image.row(0)[9] == 10);
  }
  CHECK(vit::test::contains(refusal(gif({kClear, 1, 7, 1}, true)), "an undefined code"));
  CHECK(vit::test::contains(refusal(gif({kClear, 6, 1, 1}, true)), "an undefined code"));
  CHECK(vit::test::contains(refusal(gif({kClear, 1, kEnd}, true)), "end code"));
  CHECK(vit::test::contains(refusal(gif({kClear, 1, 1}, true)), "the data end before the image does"));
}

TEST_CASE("image: a JPEG has at most 500 scans") {
  const vit::Image image = decode(jpeg_with_scans(499));
  CHECK(image.size() == vit::ImageSize{8, 8});
  CHECK(image.row(3)[7] == 128);
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(jpeg_with_scans(501)));
}

TEST_CASE("image: scans of a JPEG are bounded by the pixels that may be read") {
  constexpr std::uint32_t kEdge = 1024;  // 2^14 blocks; 2^24 visits are for any image
  const vit::DecodeOptions options{.max_pixels = std::size_t{kEdge} * kEdge};
  CHECK(decode(jpeg_with_scans(499, kEdge), options).size() == vit::ImageSize{kEdge, kEdge});
  CHECK(decode(jpeg_with_scans(100, kEdge, true), options).size() == vit::ImageSize{kEdge, kEdge});
  CHECK_THROWS_WITH_AS(decode(jpeg_with_scans(130, kEdge, true), options),
                       doctest::Contains("too many scans for its size"), vit::Error);
  CHECK(refusal(jpeg_with_scans(130, kEdge, true)).empty());
}

TEST_CASE("image: a transparent color of a PNG is none in an icon") {
  Bytes png = vit::test::png_start(1, 1, 8, 0, 0);
  append_chunk(png, "tRNS", {0, 100});
  append_chunk(png, "IDAT", vit::test::zlib_stored({0, 100}));
  append_chunk(png, "IEND", {});
  Bytes icon = {0, 0, 1, 0,  1, 0, 1, 1, 0, 0, 1, 0, 32, 0, static_cast<std::uint8_t>(png.size()),
                0, 0, 0, 22, 0, 0, 0};
  append(icon, png);
  const vit::DecodeOptions on_white{.alpha = vit::Alpha::on_white};
  CHECK(decode(png, on_white).data()[0] == 255);
  CHECK(decode(icon, on_white).data()[0] == 100);
}

TEST_CASE("image: one gray pixel in JPEG 2000") {
  const Bytes pixel = {
      0xFF, 0x4F, 0xFF, 0x51, 0,    41,   0, 0, 0, 0,  0, 1, 0,    0,    0,    1,
      0,    0,    0,    0,    0,    0,    0, 0, 0, 0,  0, 1, 0,    0,    0,    1,
      0,    0,    0,    0,    0,    0,    0, 0, 0, 1,  7, 1, 1,        // size, and a component of 8 bits
      0xFF, 0x52, 0,    12,   0,    0,    0, 1, 0, 0,  4, 4, 0,    1,  // style: no levels
      0xFF, 0x5C, 0,    4,    0x40, 0x40,                              // quantization: none
      0xFF, 0x90, 0,    10,   0,    0,    0, 0, 0, 19, 0, 1, 0xFF, 0x93, 0xC3, 0xE7,
      0x04, 0x09, 0x6F, 0xFF, 0xD9};
  const vit::Image image = decode(pixel);
  CHECK(image.size() == vit::ImageSize{1, 1});
  for (const int channel : {0, 1, 2}) CHECK(image.data()[channel] == 100);
}

TEST_CASE("image: memory for a JPEG 2000 file is bounded by its size") {
  CHECK(refusal(j2k({})).empty());
  CHECK(refusal(j2k({.width = 300, .height = 200, .block = 3, .precinct = 0x77, .layers = 40})).empty());
  CHECK(refusal(j2k({.width = 300, .height = 200, .block = 0, .style_in_tile = true})).empty());
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"),
              decode(j2k({.width = 13000, .height = 13000, .block = 0})));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"),
              decode(j2k({.width = 13000, .height = 13000, .block = 0, .style_in_tile = true})));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"),
              decode(j2k({.width = 1000, .height = 1000, .precinct = 0x11})));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"), decode(j2k({.width = 200, .height = 200, .tile = 1})));
  CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"),
              decode(j2k({.width = 500, .height = 500, .precinct = 0x44, .layers = 60000})));
  CHECK_ERROR(vit::ErrorKind::format, ("memory", "1000000"),
              decode(j2k({.width = 1000, .height = 1000, .tile = 1})));
  CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(j2k({.block = 9})));
}

TEST_CASE("image: damaged JPEG 2000 files are Errors in several threads at once, and nothing is printed") {
  std::streambuf* const buffer = std::cerr.rdbuf();
  const std::string text = printed([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int round = 0; round < 20; ++round) {
          CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(j2k({.has_packets = false})));
          CHECK_ERROR(vit::ErrorKind::format, ("memory"), decode(j2k({.tile_index = 5})));
          CHECK_ERROR(vit::ErrorKind::unsupported, ("memory"), decode(j2k({.offset = 3})));
          CHECK(decode(j2k({})).size() == vit::ImageSize{64, 64});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  CHECK(text == "");
  CHECK(std::cerr.rdbuf() == buffer);
}

TEST_CASE("image: large files are refused unread") {
  const vit::test::TemporaryFolder folder;
  const auto sparse = [&](const char* name, const std::string& head, std::uintmax_t size) {
    const std::filesystem::path path = folder.write(name, head);
    std::error_code error;
    std::filesystem::resize_file(path, size, error);
    return error ? std::filesystem::path() : path;
  };
  if (const auto path = sparse("zeros.png", "", std::uintmax_t{3} << 29); !path.empty()) {
    std::string message;
    CHECK(vit::test::peak_growth_bytes(
              [&] { message = vit::test::message_of([&] { vit::decode_file(path); }); }) < 32 * kMegabyte);
    CHECK(vit::test::contains(message, "zeros.png: "));
  }
  for (const std::uintmax_t size : {std::uintmax_t{1} << 40, (std::uintmax_t{1} << 63) - 1}) {
    const auto path = sparse("endless.png", "\x89PNG\r\n\x1A\n", size);  // not every file system can
    if (!path.empty()) CHECK_ERROR(vit::ErrorKind::unsupported, ("endless.png"), vit::decode_file(path));
  }
}

TEST_CASE("image: floats of a window are those of the whole image") {
  const vit::Image image = random_image(37, 53);
  for (const auto filter :
       {vit::ResizeFilter::nearest, vit::ResizeFilter::bilinear, vit::ResizeFilter::bicubic}) {
    for (const vit::ImageSize target :
         {vit::ImageSize{37, 53}, vit::ImageSize{37, 20}, vit::ImageSize{90, 53}, vit::ImageSize{16, 20},
          vit::ImageSize{81, 70}}) {
      vit::Tensor<float> whole(vit::Shape{3, target.height, target.width});
      resize_to_float(image, target, {0, 0, target.height, target.width}, filter, whole.view());
      const vit::internal::ResizeWindow window{3, 5, target.height - 7, target.width - 6};
      vit::Tensor<float> part(vit::Shape{3, window.height, window.width});
      resize_to_float(image, target, window, filter, part.view());
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t y = 0; y < window.height; ++y) {
          REQUIRE(std::memcmp(part.view().row(c * window.height + y),
                              whole.view().row(c * target.height + window.top + y) + window.left,
                              window.width * sizeof(float)) == 0);
        }
      }
    }
  }
}

TEST_CASE("image: floats outside the crop are not computed") {
  vit::PreprocessConfig config;
  config.resize = vit::ResizeRule::shortest_edge;
  config.resize_height = config.resize_width = 224;
  config.crop_height = config.crop_width = 224;
  config.normalize = vit::NormalizeRule::rescale_first;
  config.resampler = vit::Resampler::torchvision_float;
  config.filter = vit::ResizeFilter::bilinear;
  const vit::Preprocessor preprocessor(config);
  const vit::Image line(1, 2000);  // becomes 224 x 448000
  CHECK(vit::test::peak_growth_bytes([&] { preprocessor.run(line, 1); }) < 64 * kMegabyte);
}

TEST_CASE("image: torchvision's precision looks at all weights, so that these are bounded") {
  constexpr std::size_t kIn = 60'000'000;
  CHECK_THROWS_WITH_AS(vit::internal::FixedAxis({kIn, kIn / 2, 0, 8}, vit::ResizeFilter::bilinear,
                                                vit::Resampler::torchvision_uint8),
                       doctest::Contains("2^25 weights"), vit::Error);
  CHECK_NOTHROW(
      vit::internal::FixedAxis({kIn, kIn / 2, 0, 8}, vit::ResizeFilter::bilinear, vit::Resampler::pillow));
}
