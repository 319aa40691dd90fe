// Parts of image files, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vit::test {

using Bytes = std::vector<std::uint8_t>;

inline void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// `count` bytes of a number, the highest first.
inline void append_big(Bytes& bytes, std::uint64_t value, int count) {
  for (int i = count - 1; i >= 0; --i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

/// One chunk of a PNG: length, type, data, checksum of type and data.
inline void append_chunk(Bytes& bytes, const std::string& type, const Bytes& data) {
  append_big(bytes, data.size(), 4);
  const std::size_t from = bytes.size();
  append(bytes, Bytes(type.begin(), type.end()));
  append(bytes, data);
  std::uint32_t crc = 0xFFFFFFFFu;
  for (std::size_t i = from; i < bytes.size(); ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  append_big(bytes, ~crc, 4);
}

/// The signature of a PNG and its header.
inline Bytes png_start(std::uint32_t width, std::uint32_t height, int depth, int color_type, int interlace) {
  Bytes bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  Bytes header;
  append_big(header, width, 4);
  append_big(header, height, 4);
  for (const int value : {depth, color_type, 0, 0, interlace})
    header.push_back(static_cast<std::uint8_t>(value));
  append_chunk(bytes, "IHDR", header);
  return bytes;
}

/// A zlib stream that holds fewer than 65536 bytes as they are.
inline Bytes zlib_stored(const Bytes& data) {
  Bytes bytes = {0x78, 0x01, 1};
  for (const std::size_t length : {data.size(), ~data.size()}) {
    bytes.push_back(static_cast<std::uint8_t>(length));
    bytes.push_back(static_cast<std::uint8_t>(length >> 8));
  }
  append(bytes, data);
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const std::uint8_t byte : data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  append_big(bytes, b << 16 | a, 4);
  return bytes;
}

}  // namespace vit::test
