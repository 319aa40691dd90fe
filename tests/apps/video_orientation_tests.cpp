// The orientation of videos: the matrices of their headers, right, odd and damaged.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>

#include "apps/vit/inputs/video_orientation.h"
#include "tests/apps/program.h"
#include "tests/support/movie_writer.h"

using namespace vit;
using namespace vit::test;

namespace {

std::optional<int> orientation_of(const std::string& bytes) {
  const TestFolder folder;
  write_text(folder / "a.mp4", bytes);
  return app::video_orientation(folder / "a.mp4");
}

}  // namespace

TEST_CASE("apps: the orientation of a video is that of its track's matrix") {
  // x' = a x + c y, y' = b x + d y, y downwards
  const std::pair<TrackMatrix, int> kMatrices[]{
      {{1, 0, 0, 1}, 1}, {{-1, 0, 0, 1}, 2}, {{-1, 0, 0, -1}, 3}, {{1, 0, 0, -1}, 4},
      {{0, 1, 1, 0}, 5}, {{0, 1, -1, 0}, 6}, {{0, -1, -1, 0}, 7}, {{0, -1, 1, 0}, 8},
      {{0, 0, 0, 0}, 1}, {{2, 0, 0, 3}, 1},  {{3, 1, -1, 3}, 1},  // 18 degrees: the nearest quarter turn
      {{1, 3, -3, 1}, 6}};
  for (const auto& matrix : kMatrices) {
    CAPTURE(matrix.second);
    CHECK(orientation_of(small_movie(matrix.first)) == matrix.second);
  }
  // the movie's matrix comes after the track's: two quarter turns, and a mirror after a quarter turn
  CHECK(orientation_of(small_movie({0, 1, -1, 0}, {0, 1, -1, 0})) == 3);
  CHECK(orientation_of(small_movie({0, 1, -1, 0}, {-1, 0, 0, 1})) == 5);
}

TEST_CASE("apps: odd headers of videos") {
  const std::string whole = small_movie({0, 1, -1, 0});
  CHECK(orientation_of("RIFF....AVI LIST") == std::nullopt);
  CHECK(orientation_of("\x1A\x45\xDF\xA3 Matroska") == std::nullopt);
  CHECK(orientation_of(movie_box("ftyp", "isom")) == 1);
  // QuickTime before ftyp existed, and the headers in front of the frames
  const std::size_t moov = whole.find("moov") - 4;
  CHECK(orientation_of(whole.substr(moov)) == 6);
  CHECK(orientation_of(movie_box("wide", "") + whole.substr(moov)) == 6);
  // a box of 64 bits, and one that ends with the file
  const std::string content = whole.substr(moov + 8);
  const auto long_size = static_cast<std::uint32_t>(content.size() + 16);
  CHECK(orientation_of(big_endian({1}) + "moov" + big_endian({0, long_size}) + content) == 6);
  CHECK(orientation_of(movie_box("free", "...") + big_endian({0}) + "moov" + content) == 6);
  // a track of sound before the video's, with a matrix of its own
  const std::string sound = movie_box(
      "trak",
      movie_box("tkhd", std::string(40, '\0') + matrix_bytes({-1, 0, 0, -1}) + std::string(8, '\0')) +
          movie_box("mdia", movie_box("hdlr", std::string(8, '\0') + "soun" + std::string(12, '\0'))));
  CHECK(orientation_of(movie_box("moov", sound + content)) == 6);
  // version 1 has times of 64 bits
  const std::string handler = movie_box("mdia", movie_box("hdlr", std::string(8, '\0') + "vide"));
  const std::string header = movie_box("tkhd", '\1' + std::string(51, '\0') + matrix_bytes({0, -1, 1, 0}));
  CHECK(orientation_of(movie_box("moov", movie_box("trak", header + handler))) == 8);
  CHECK(orientation_of(movie_box("moov", movie_box("trak", handler + header))) == 8);
}

TEST_CASE("apps: damaged headers of videos demand no orientation, and no endless work") {
  const std::string whole = small_movie({0, 1, -1, 0});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const std::optional<int> found = orientation_of(whole.substr(0, size));
    if (size >= 16) CHECK(found.value_or(1) == 1);
  }
  // boxes of no size, smaller than their header, larger than the file, beyond 64 bits
  for (const std::uint32_t size : {2u, 7u, 0x7FFF'FFFFu, 0xFFFF'FFFFu})
    CHECK(orientation_of(movie_box("ftyp", "isom") + big_endian({size}) + "moov") == 1);
  CHECK(orientation_of(big_endian({1}) + "moov" + big_endian({0xFFFF'FFFFu, 0xFFFF'FFFFu})) == std::nullopt);
  std::string many = movie_box("ftyp", "isom");
  for (int i = 0; i < 100'000; ++i) many += movie_box("free", "");
  CHECK(orientation_of(many + whole) == 6);
}
