// The table of names and the grammar of references.
#include "vit/text/clean.h"

#include <algorithm>
#include <array>

#include "vit/base/ascii.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

struct Entity {
  std::string_view name, characters;
};

constexpr Entity kEntities[] = {
#include "vit/text/html_entities.inc"
};

/// Longest name that Python recognizes.
constexpr std::size_t kMaxName = 32;

constexpr std::array<char32_t, 32> kWindows1252 = {
    0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
    0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};

void append_number(std::string& result, char32_t number) {
  constexpr char32_t kReplacement = 0xFFFD;
  if (number == 0 || (number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) {
    append_utf8(result, kReplacement);
  } else if (number >= 0x80 && number <= 0x9F) {
    append_utf8(result, windows_1252(number));
  } else if ((number < 0x20 && number != '\t' && number != '\n' && number != '\f' && number != '\r') ||
             number == 0x7F || (number >= 0xFDD0 && number <= 0xFDEF) || (number & 0xFFFE) == 0xFFFE) {
    // Controls and noncharacters vanish.
  } else {
    append_utf8(result, number);
  }
}

int digit_of(char c, int base) {
  const int digit = hexadecimal_digit(c);
  return digit < base ? digit : -1;
}

/// "#..." after an ampersand; returns bytes read, 0 if it is not a number.
std::size_t numeric(std::string_view text, std::string& result) {
  std::size_t at = 1;
  int base = 10;
  if (at < text.size() && (text[at] == 'x' || text[at] == 'X')) {
    base = 16;
    ++at;
  }
  const std::size_t first = at;
  char32_t number = 0;
  for (; at < text.size() && digit_of(text[at], base) >= 0; ++at) {
    constexpr char32_t kBeyond = 0x110000;
    number = std::min<char32_t>(
        kBeyond, number * static_cast<char32_t>(base) + static_cast<char32_t>(digit_of(text[at], base)));
  }
  if (at == first) return 0;
  append_number(result, number);
  return at < text.size() && text[at] == ';' ? at + 1 : at;
}

/// A name after an ampersand; returns bytes read, 0 if no prefix of it is known.
std::size_t named(std::string_view text, std::string& result) {
  std::size_t end = 0;
  for (std::size_t count = 0; count < kMaxName && end < text.size(); ++count) {
    if (std::string_view("\t\n\f <&#;").find(text[end]) != std::string_view::npos) break;
    end += character_bytes(text[end]);
  }
  if (end == 0) return 0;
  if (end < text.size() && text[end] == ';') ++end;
  for (std::size_t length = end; length >= 2; --length) {
    if (const auto characters = html_entity(text.substr(0, length))) {
      result += *characters;
      return length;
    }
  }
  return 0;
}

}  // namespace

char32_t windows_1252(char32_t byte) {
  return kWindows1252[byte - 0x80];
}

std::optional<std::string_view> html_entity(std::string_view name) {
  const auto* const found =
      std::lower_bound(std::begin(kEntities), std::end(kEntities), name,
                       [](const Entity& entity, std::string_view n) { return entity.name < n; });
  if (found == std::end(kEntities) || found->name != name) return std::nullopt;
  return found->characters;
}

std::string unescape_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '&') {
      result += text[at++];
      continue;
    }
    const std::string_view rest = text.substr(at + 1);
    const std::size_t length = rest.starts_with('#') ? numeric(rest, result) : named(rest, result);
    if (length == 0) result += '&';
    at += 1 + length;
  }
  return result;
}

}  // namespace vit::internal
