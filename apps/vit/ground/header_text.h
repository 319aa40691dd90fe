// Text of HTTP headers: ASCII, names in either case.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "vit/base/ascii.h"

namespace vit::app {

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](char x, char y) { return internal::lower_ascii(x) == internal::lower_ascii(y); });
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

/// The part before the next `separator` of `list`, trimmed; both are taken from the list.
inline std::string_view take_header_item(std::string_view& list, char separator) {
  const std::string_view item = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(item.size() + 1, list.size()));
  return header_trimmed(item);
}

/// Whether a header of the kind of Accept (a, b;q=0.5, c;q=0) takes `name`, with a weight above 0; nothing if
/// it does not name it.
inline std::optional<bool> accepted(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view item = take_header_item(header, ',');
    if (!equal_ignoring_case(take_header_item(item, ';'), name)) continue;
    while (!item.empty()) {
      std::string_view weight = take_header_item(item, ';');
      if (equal_ignoring_case(take_header_item(weight, '='), "q"))
        return header_trimmed(weight).find_first_not_of("0.") != std::string_view::npos;
    }
    return true;
  }
  return std::nullopt;
}

}  // namespace vit::app
