// Text of HTTP headers: ASCII, names in either case.
#pragma once

#include <algorithm>
#include <string_view>

namespace vit::app {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

inline bool starts_ignoring_case(std::string_view text, std::string_view prefix) {
  return equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

/// Without blanks and tabs at both ends.
inline std::string_view header_trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace vit::app
