// Text from a file made fit for a message: one line, bounded, printable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vit::internal {

/// `name` in double quotes; control characters become \xNN and long names are truncated, so that a hostile
/// file cannot forge or flood a message. Bytes from 0x80 on pass, names may be UTF-8.
inline std::string in_quotes(std::string_view name) {
  constexpr std::size_t kMaxLength = 160;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char character : name.substr(0, kMaxLength)) {
    const auto code = static_cast<unsigned char>(character);
    if (code < 0x20 || code == 0x7F) {
      out += {'\\', 'x', kHex[code >> 4], kHex[code & 15]};
    } else {
      out += character;
    }
  }
  if (name.size() > kMaxLength) out += "...";
  return out + "\"";
}

/// Unquoted if unambiguous: short, printable ASCII without spaces. Otherwise in_quotes().
inline std::string plain_or_quoted(std::string_view name) {
  constexpr std::size_t kMaxPlain = 100;
  const bool plain = !name.empty() && name.size() <= kMaxPlain &&
                     std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7F; });
  return plain ? std::string(name) : in_quotes(name);
}

/// The first `shown` names separated by commas, and the number of the others.
inline std::string listed(const std::vector<std::string>& names, std::size_t shown = 6) {
  std::string out;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > shown) out += " and " + std::to_string(names.size() - shown) + " more";
  return out;
}

}  // namespace vit::internal
