// Letters and digits of ASCII, whatever the locale; other bytes stay as they are. Letters of all scripts are
// in text/unicode.h.
#pragma once

#include <string>
#include <string_view>

namespace vit::internal {

constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (lower_ascii(c) >= 'a' && lower_ascii(c) <= 'z');
}

inline std::string lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_ascii(c);
  return lower;
}

/// 0 to 15, or -1 for other characters.
constexpr int hexadecimal_digit(char c) {
  const char lower = lower_ascii(c);
  return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace vit::internal
