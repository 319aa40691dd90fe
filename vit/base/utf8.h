// UTF-8: code points from arbitrary bytes, and back. Classes and cases of letters are in
// text/unicode.h.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

struct CodePoint {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The code point at the start of `text` (not empty), or nothing if the bytes are not valid UTF-8: RFC 3629,
/// no overlong forms, no surrogates, nothing beyond U+10FFFF.
inline std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return std::nullopt;
  char32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return std::nullopt;
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return std::nullopt;
  return CodePoint{code, length};
}

/// Bytes before the first that is not valid UTF-8; text.size() if all are.
inline std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::optional<CodePoint> next = first_code_point(text.substr(at));
    if (!next) break;
    at += next->bytes;
  }
  return at;
}

inline bool is_utf8(std::string_view text) {
  return valid_utf8_bytes(text) == text.size();
}

/// The text without the byte order mark that some editors write and UTF-8 does not need.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

/// Appends the one to four bytes of a code point up to U+10FFFF.
inline void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  const auto continuation = [&](int shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    put(0xF0 | (code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace vit::internal
