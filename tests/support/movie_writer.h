// QuickTime files of uncompressed frames, box by box: what a decoder returns is what was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vit::test {

/// The bytes of big-endian numbers.
inline std::string big_endian(const std::vector<std::uint32_t>& values) {
  std::string bytes;
  for (const std::uint32_t value : values) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255u);
  }
  return bytes;
}

inline std::string movie_box(const std::string& type, const std::string& content) {
  return big_endian({static_cast<std::uint32_t>(content.size() + 8)}) + type + content;
}

/// a b c d of the matrix of a track: x' = a x + c y, y' = b x + d y.
using TrackMatrix = std::array<int, 4>;

inline std::string matrix_bytes(const TrackMatrix& m) {
  const auto fixed = [](int value) { return static_cast<std::uint32_t>(value) << 16; };
  return big_endian({fixed(m[0]), fixed(m[1]), 0, fixed(m[2]), fixed(m[3]), 0, 0, 0, 1u << 30});
}

/// A file of frames (H, W, 3) in red, green, blue. An uncompressed row has an even number of bytes: W is
/// even.
inline std::string movie(const std::vector<std::string>& frames, std::uint32_t height, std::uint32_t width,
                         const TrackMatrix& of_track, const TrackMatrix& of_movie = {1, 0, 0, 1}) {
  const auto count = static_cast<std::uint32_t>(frames.size());
  const std::uint32_t bytes = 3 * height * width;
  const std::string file_type = movie_box("ftyp", "qt  " + big_endian({0}) + "qt  ");
  std::string data;
  for (const std::string& frame : frames) data += frame;
  const auto first = static_cast<std::uint32_t>(file_type.size() + 8);
  const std::string entry = big_endian({0}) + std::string("\0\0\0\1", 4) + big_endian({0, 0, 0, 0}) +
                            big_endian({width << 16 | height, 72u << 16, 72u << 16, 0}) +
                            std::string("\0\1", 2) + std::string(32, '\0') + std::string("\0\x18\xFF\xFF", 4);
  const std::string table =
      movie_box("stbl", movie_box("stsd", big_endian({0, 1}) + movie_box("raw ", entry)) +
                            movie_box("stts", big_endian({0, 1, count, 100})) +
                            movie_box("stsc", big_endian({0, 1, 1, count, 1})) +
                            movie_box("stsz", big_endian({0, bytes, count})) +
                            movie_box("stco", big_endian({0, 1, first})));
  const std::string references =
      movie_box("dinf", movie_box("dref", big_endian({0, 1}) + movie_box("url ", big_endian({1}))));
  const std::string media =
      movie_box("mdia", movie_box("mdhd", big_endian({0, 0, 0, 1000, count * 100, 0})) +
                            movie_box("hdlr", big_endian({0}) + "mhlrvide" + big_endian({0, 0, 0}) + '\0') +
                            movie_box("minf", movie_box("vmhd", big_endian({1, 0, 0})) + references + table));
  const std::string track = movie_box(
      "trak", movie_box("tkhd", big_endian({3, 0, 0, 1, 0, count * 100, 0, 0, 0, 0}) +
                                    matrix_bytes(of_track) + big_endian({width << 16, height << 16})) +
                  media);
  const std::string header =
      movie_box("mvhd", big_endian({0, 0, 0, 1000, count * 100, 1u << 16, 256u << 16, 0, 0}) +
                            matrix_bytes(of_movie) + big_endian({0, 0, 0, 0, 0, 0, 2}));
  return file_type + movie_box("mdat", data) + movie_box("moov", header + track);
}

/// The size of the frames of small_movie().
inline constexpr std::size_t kMovieHeight = 2, kMovieWidth = 4;

/// Two frames; pixel (y, x) of frame i is (16 y + x, i, 200).
inline std::string small_movie(const TrackMatrix& of_track, const TrackMatrix& of_movie = {1, 0, 0, 1}) {
  std::vector<std::string> frames(2);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    for (std::size_t y = 0; y < kMovieHeight; ++y) {
      for (std::size_t x = 0; x < kMovieWidth; ++x) {
        frames[i] += static_cast<char>(16 * y + x);
        frames[i] += static_cast<char>(i);
        frames[i] += static_cast<char>(200);
      }
    }
  }
  return movie(frames, kMovieHeight, kMovieWidth, of_track, of_movie);
}

}  // namespace vit::test
