// PNG files of labels, from rows of letters: digits are indices, "." the index of none or a transparent
// pixel, "r", "b" and "R" colors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/picture_bytes.h"

namespace vit::test {

inline std::array<std::uint8_t, 3> color_of_letter(char letter) {
  if (letter == 'r') return {255, 0, 0};
  if (letter == 'R') return {254, 0, 0};
  return {0, 0, 255};
}

/// A PNG of 8 bits whose rows append(out, letter) fills.
template <typename Append>
void write_letters(const std::string& path, const std::vector<std::string>& rows, int color_type,
                   const Bytes& palette, const Append& append_pixel) {
  Bytes png = png_start(static_cast<std::uint32_t>(rows.front().size()),
                        static_cast<std::uint32_t>(rows.size()), 8, color_type, 0);
  if (!palette.empty()) append_chunk(png, "PLTE", palette);
  Bytes data;
  for (const std::string& row : rows) {
    data.push_back(0);  // no filter
    for (const char letter : row) append_pixel(data, letter);
  }
  append_chunk(png, "IDAT", zlib_stored(data));
  append_chunk(png, "IEND", {});
  write_text(path, {reinterpret_cast<const char*>(png.data()), png.size()});
}

inline void write_gray(const std::string& path, const std::vector<std::string>& rows, int none) {
  write_letters(path, rows, 0, {}, [none](Bytes& out, char letter) {
    out.push_back(static_cast<Bytes::value_type>(letter == '.' ? none : letter - '0'));
  });
}

inline void write_palette(const std::string& path, const std::vector<std::string>& rows,
                          const std::vector<std::array<std::uint8_t, 3>>& colors) {
  Bytes palette;
  for (const auto& color : colors) {
    for (const std::uint8_t c : color) palette.push_back(static_cast<Bytes::value_type>(c));
  }
  write_letters(path, rows, 3, palette,
                [](Bytes& out, char letter) { out.push_back(static_cast<Bytes::value_type>(letter - '0')); });
}

inline void write_rgb(const std::string& path, const std::vector<std::string>& rows) {
  write_letters(path, rows, 2, {}, [](Bytes& out, char letter) {
    for (const std::uint8_t c : color_of_letter(letter)) out.push_back(static_cast<Bytes::value_type>(c));
  });
}

inline void write_strokes(const std::string& path, const std::vector<std::string>& rows) {
  write_letters(path, rows, 6, {}, [](Bytes& out, char letter) {
    for (const std::uint8_t c : color_of_letter(letter)) out.push_back(static_cast<Bytes::value_type>(c));
    out.push_back(static_cast<Bytes::value_type>(letter == '.' ? 0 : 255));
  });
}

}  // namespace vit::test
