// Where files note their orientation, and which note counts, as Pillow's exif_transpose has it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/picture_bytes.h"
#include "vit/image/image.h"

namespace {

using vit::test::append;
using vit::test::append_big;
using vit::test::append_chunk;
using vit::test::Bytes;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// An EXIF block with one tag.
Bytes exif(std::uint8_t orientation, std::uint8_t tag = 0x12) {
  return {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, tag, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0};
}

std::string xmp(int orientation) {
  return "<rdf:Description tiff:Orientation=\"" + std::to_string(orientation) + "\"/>";
}

struct Chunk {
  std::string type;
  Bytes data;
};

Chunk plain_text(const std::string& keyword, const std::string& text) {
  return {"tEXt", bytes_of(keyword + '\0' + text)};
}

Chunk deflated_text(const std::string& keyword, const std::string& text) {
  Bytes data = bytes_of(keyword + '\0' + '\0');
  append(data, vit::test::zlib_stored(bytes_of(text)));
  return {"zTXt", data};
}

Chunk international_text(const std::string& keyword, const std::string& text, bool deflated = false) {
  Bytes data = bytes_of(keyword + '\0');
  append(data, {static_cast<std::uint8_t>(deflated), 0, 'e', 'n', 0, 0});
  append(data, deflated ? vit::test::zlib_stored(bytes_of(text)) : bytes_of(text));
  return {"iTXt", data};
}

std::string raw_profile(const Bytes& block) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "\nexif\n      " + std::to_string(block.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i % 16 == 0) text += '\n';
    text += kDigits[block[i] >> 4];
    text += kDigits[block[i] & 15];
  }
  return text + '\n';
}

bool is_turned(const Bytes& bytes) {
  const vit::Image image =
      vit::decode_bytes(std::as_bytes(std::span(bytes)), {.orientation = vit::Orientation::apply}, "memory");
  return image.height() > image.width();
}

/// Whether a PNG of 2 x 1 pixels with these chunks is 1 x 2 once it is upright.
bool is_png_turned(const std::vector<Chunk>& chunks) {
  Bytes bytes = vit::test::png_start(2, 1, 8, 0, 0);
  for (const Chunk& chunk : chunks) append_chunk(bytes, chunk.type, chunk.data);
  append_chunk(bytes, "IDAT", vit::test::zlib_stored({0, 10, 20}));
  append_chunk(bytes, "IEND", {});
  return is_turned(bytes);
}

/// Whether a JPEG of 16 x 8 pixels with these APP1 segments is rotated.
bool is_jpeg_turned(const std::vector<Bytes>& segments) {
  Bytes bytes = {0xFF, 0xD8};
  for (const Bytes& segment : segments) {
    append(bytes, {0xFF, 0xE1});
    append_big(bytes, segment.size() + 2, 2);
    append(bytes, segment);
  }
  append(bytes, {0xFF, 0xDB, 0, 67, 0});
  bytes.resize(bytes.size() + 64, 1);
  append(bytes, {0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 16, 1, 1, 0x11, 0});
  for (const std::uint8_t table : Bytes{0x00, 0x10}) {  // code 0 means no difference, or the end
    append(bytes, {0xFF, 0xC4, 0, 20, table, 1});
    bytes.resize(bytes.size() + 16, 0);
  }
  append(bytes, {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0x0F, 0xFF, 0xD9});
  return is_turned(bytes);
}

const std::string kXmp = "XML:com.adobe.xmp";
const std::string kProfile = "Raw profile type exif";

}  // namespace

TEST_CASE("orientation: a PNG notes it in eXIf, in XMP or in a raw profile, plain or deflated") {
  CHECK(!is_png_turned({}));
  CHECK(is_png_turned({{"eXIf", exif(6)}}));
  CHECK(is_png_turned({international_text(kXmp, xmp(6))}));
  CHECK(is_png_turned({international_text(kXmp, xmp(6), true)}));
  CHECK(is_png_turned({plain_text(kXmp, xmp(6))}));
  CHECK(is_png_turned({deflated_text(kXmp, xmp(6))}));
  CHECK(is_png_turned({plain_text(kProfile, raw_profile(exif(6)))}));
  CHECK(is_png_turned({deflated_text(kProfile, raw_profile(exif(6)))}));
}

TEST_CASE("orientation: other texts of a PNG do not count") {
  CHECK(is_png_turned({international_text(kXmp, xmp(6)), international_text("Comment", "hello")}));
  CHECK(!is_png_turned({international_text("Comment", xmp(6))}));
  CHECK(!is_png_turned({plain_text("Raw profile type APP1", raw_profile(exif(6)))}));
  CHECK(!is_png_turned({plain_text(kProfile, "\nexif\n 2\nno digits\n")}));
  CHECK(!is_png_turned({plain_text(kProfile, "")}));
  CHECK(!is_png_turned({{"zTXt", bytes_of(kXmp + '\0' + '\0' + xmp(6))}}));  // not deflated
  CHECK(!is_png_turned({{"iTXt", bytes_of(kXmp)}}));
}

TEST_CASE("orientation: of several notes in a PNG the last of a kind counts, eXIf before a raw profile") {
  CHECK(is_png_turned({international_text(kXmp, xmp(1)), international_text(kXmp, xmp(6))}));
  CHECK(!is_png_turned({international_text(kXmp, xmp(6)), deflated_text(kXmp, xmp(1))}));
  CHECK(!is_png_turned({{"eXIf", exif(1)}, plain_text(kProfile, raw_profile(exif(6)))}));
  CHECK(!is_png_turned({{"eXIf", exif(6, 0x10)}, plain_text(kProfile, raw_profile(exif(6)))}));
}

TEST_CASE("orientation: EXIF counts before XMP, also where it says nothing that exists") {
  const auto camera = [](std::uint8_t orientation, std::uint8_t tag = 0x12) {
    Bytes segment = {'E', 'x', 'i', 'f', 0, 0};
    append(segment, exif(orientation, tag));
    return segment;
  };
  const Bytes packet = bytes_of(std::string("http://ns.adobe.com/xap/1.0/") + '\0' + xmp(6));
  const Chunk text = international_text(kXmp, xmp(6));
  CHECK(is_jpeg_turned({packet}));
  CHECK(is_jpeg_turned({camera(6)}));
  CHECK(is_jpeg_turned({camera(6, 0x10), packet}));  // another tag
  CHECK(is_png_turned({{"eXIf", exif(6, 0x10)}, text}));
  for (const std::uint8_t orientation : Bytes{0, 1, 9}) {
    CAPTURE(static_cast<int>(orientation));
    CHECK(!is_jpeg_turned({camera(orientation), packet}));
    CHECK(!is_png_turned({{"eXIf", exif(orientation)}, text}));
    CHECK(!is_png_turned({plain_text(kProfile, raw_profile(exif(orientation))), text}));
  }
}

TEST_CASE("orientation: a number in EXIF is read as its type says, and where") {
  const Chunk text = international_text(kXmp, xmp(6));
  constexpr std::size_t kType = 12;
  constexpr std::size_t kCount = 14;
  constexpr std::size_t kValue = 18;
  const auto typed = [](std::uint8_t type) {
    Bytes block = exif(6);
    block[kType] = type;
    return block;
  };
  CHECK(is_png_turned({{"eXIf", typed(4)}}));         // 32 bits
  CHECK(!is_png_turned({{"eXIf", typed(2)}, text}));  // a text
  CHECK(!is_png_turned({{"eXIf", typed(99)}}));
  CHECK(is_png_turned({{"eXIf", typed(99)}, text}));
  Bytes several = exif(6);
  several[kCount] = 3;
  several[kValue] = static_cast<std::uint8_t>(several.size());
  CHECK(!is_png_turned({{"eXIf", several}}));
  append(several, {6, 0, 3, 0, 1, 0});
  CHECK(is_png_turned({{"eXIf", several}}));
}
