#include "apps/vit/inputs/video_orientation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

using internal::SourceFile;

constexpr Where kReadVideo{"read video", ErrorKind::format};
// a fragmented file has two boxes a second; the headers come before them or after all of them
constexpr std::size_t kMostBoxes = 1'000'000;

/// A file's bytes from `begin` to `end`.
struct Range {
  std::uint64_t begin = 0, end = 0;

  std::uint64_t size() const { return end - begin; }
};

/// The big-endian numbers at a place of the file, which must lie within.
template <std::size_t kCount>
std::array<std::uint32_t, kCount> read_words(const SourceFile& file, std::uint64_t begin) {
  std::array<std::byte, 4 * kCount> bytes;
  file.read(static_cast<std::size_t>(begin), bytes);
  std::array<std::uint32_t, kCount> words{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    words[i / 4] = words[i / 4] << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return words;
}

constexpr std::uint32_t box_type(std::string_view name) {
  std::uint32_t type = 0;
  for (const char c : name) type = type << 8 | static_cast<unsigned char>(c);
  return type;
}

/// A box: its type and what follows its header.
struct Box {
  std::uint32_t type = 0;
  Range content;
};

/// The boxes of a range, one after another.
class Boxes {
 public:
  Boxes(const SourceFile& file, Range range, std::size_t& budget)
      : file_(file), range_(range), budget_(budget) {}

  /// The next box; nothing at the end, or from damage on.
  std::optional<Box> next() {
    constexpr std::uint64_t kHeader = 8, kLongHeader = 16;
    if (range_.size() < kHeader || budget_ == 0) return std::nullopt;
    --budget_;
    const auto [short_size, type] = read_words<2>(file_, range_.begin);
    std::uint64_t size = short_size, header = kHeader;
    if (short_size == 0) size = range_.size();  // to the end of the file
    if (short_size == 1) {
      if (range_.size() < kLongHeader) return std::nullopt;
      const auto [high, low] = read_words<2>(file_, range_.begin + kHeader);
      size = std::uint64_t{high} << 32 | low;
      header = kLongHeader;
    }
    if (size < header || size > range_.size()) return std::nullopt;
    const Box box{.type = type, .content = {range_.begin + header, range_.begin + size}};
    range_.begin += size;
    return box;
  }

  /// The next box of this type.
  std::optional<Box> find(std::string_view name) {
    while (const std::optional<Box> box = next()) {
      if (box->type == box_type(name)) return box;
    }
    return std::nullopt;
  }

 private:
  const SourceFile& file_;
  Range range_;
  std::size_t& budget_;
};

/// x' = a x + c y, y' = b x + d y, with y downwards.
struct Matrix {
  double a = 1, b = 0, c = 0, d = 1;

  /// This one, then `after`.
  Matrix then(const Matrix& after) const {
    return {.a = after.a * a + after.c * b,
            .b = after.b * a + after.d * b,
            .c = after.a * c + after.c * d,
            .d = after.b * c + after.d * d};
  }
};

/// The matrix of a box "tkhd" or "mvhd". Fields before it: of version 0 `before` bytes, of version 1, whose
/// times have 64 bits, 12 more.
std::optional<Matrix> read_matrix(const SourceFile& file, const Range& content, std::uint64_t before) {
  constexpr std::uint64_t kMatrixBytes = 36, kLongTimes = 12;
  if (content.size() < 4) return std::nullopt;
  const std::uint32_t version = read_words<1>(file, content.begin)[0] >> 24;
  if (version == 1) before += kLongTimes;
  if (version > 1 || content.size() < before + kMatrixBytes) return std::nullopt;
  const auto words = read_words<9>(file, content.begin + before);  // a b u, c d v, x y w
  const auto fixed = [&](std::size_t i) { return std::bit_cast<std::int32_t>(words[i]) / 65536.0; };
  return Matrix{.a = fixed(0), .b = fixed(1), .c = fixed(3), .d = fixed(4)};
}

bool is_video_track(const SourceFile& file, const Range& track, std::size_t& budget) {
  const std::optional<Box> media = Boxes(file, track, budget).find("mdia");
  if (!media) return false;
  const std::optional<Box> handler = Boxes(file, media->content, budget).find("hdlr");
  // version and flags, the component type of QuickTime, the handler
  return handler && handler->content.size() >= 12 &&
         read_words<3>(file, handler->content.begin)[2] == box_type("vide");
}

int exif_value(const Matrix& m) {
  if (std::abs(m.b) + std::abs(m.c) > std::abs(m.a) + std::abs(m.d)) {  // axes are exchanged
    if (m.b < 0) return m.c < 0 ? 7 : 8;
    return m.c < 0 ? 6 : 5;
  }
  if (m.a < 0) return m.d < 0 ? 3 : 2;
  return m.d < 0 ? 4 : 1;
}

int orientation_of_movie(const SourceFile& file, const Range& movie, std::size_t& budget) {
  constexpr std::uint64_t kBeforeInTrack = 40, kBeforeInMovie = 36;
  Matrix of_movie;
  if (const auto header = Boxes(file, movie, budget).find("mvhd"))
    of_movie = read_matrix(file, header->content, kBeforeInMovie).value_or(Matrix());
  Boxes tracks(file, movie, budget);
  while (const std::optional<Box> track = tracks.find("trak")) {
    if (!is_video_track(file, track->content, budget)) continue;
    const std::optional<Box> header = Boxes(file, track->content, budget).find("tkhd");
    if (!header) return 1;
    return exif_value(read_matrix(file, header->content, kBeforeInTrack).value_or(Matrix()).then(of_movie));
  }
  return 1;
}

/// Whether a file of the family may begin with a box of this type; those before ftyp are QuickTime's.
bool begins_movie(std::uint32_t type) {
  constexpr std::string_view kFirst[] = {"ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "uuid"};
  return std::ranges::any_of(kFirst, [&](std::string_view name) { return type == box_type(name); });
}

}  // namespace

std::optional<int> video_orientation(const std::filesystem::path& path) {
  const SourceFile file(path, kReadVideo);
  std::size_t budget = kMostBoxes;
  Boxes boxes(file, {0, file.size()}, budget);
  std::optional<Box> box = boxes.next();
  if (!box || !begins_movie(box->type)) return std::nullopt;
  for (; box; box = boxes.next()) {
    if (box->type == box_type("moov")) return orientation_of_movie(file, box->content, budget);
  }
  return 1;
}

}  // namespace vit::app
