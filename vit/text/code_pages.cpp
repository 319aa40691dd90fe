// The tables, their inverses, and the looks of bytes derived from them.
#include "vit/text/code_pages.h"

#include <algorithm>
#include <vector>

namespace vit::internal {
namespace {

constexpr std::size_t kTables = kCodePages.size() - 1;  // Latin-1 needs none
constexpr std::uint16_t kCharacters[kTables][128] = {
#include "vit/text/code_pages.inc"
};

struct Entry {
  char32_t c;
  char byte;
};
using Inverse = std::array<Entry, 128>;  // sorted by character

const Inverse& inverse_of(CodePage page) {
  static const std::array<Inverse, kTables> inverses = [] {
    std::array<Inverse, kTables> made{};
    for (std::size_t table = 0; table < kTables; ++table) {
      for (std::size_t i = 0; i < 128; ++i)
        made[table][i] = {kCharacters[table][i], static_cast<char>(0x80 + i)};
      std::ranges::sort(made[table], {}, &Entry::c);
    }
    return made;
  }();
  return inverses[static_cast<std::size_t>(page) - 1];
}

std::optional<char> byte_of(char32_t c, CodePage page) {
  if (is_windows(page)) {
    if (c == 0xFFFD) return kLostByte;
    if (c == 0x1A) return std::nullopt;
  }
  if (c < 0x80) return static_cast<char>(c);
  if (page == CodePage::latin1) return c <= 0xFF ? std::optional(static_cast<char>(c)) : std::nullopt;
  const Inverse& inverse = inverse_of(page);
  const auto* const found = std::ranges::lower_bound(inverse, c, {}, &Entry::c);
  return found != inverse.end() && found->c == c ? std::optional(found->byte) : std::nullopt;
}

/// One more than the last character of the Windows pages, the trade mark sign.
constexpr std::size_t kLooks = 0x2123;

std::vector<ByteLooks> all_looks() {
  std::vector<ByteLooks> looks(kLooks);
  const auto note = [&looks](std::size_t byte, char32_t c) {
    ByteLooks& l = looks[c];
    if (byte < 0xC0) {
      l.continuation = true;
      const bool typographic =
          (c >= 0x2013 && c <= 0x2015) || (c >= 0x2018 && c <= 0x201E) || c == 0x2022 || c == 0x2026;
      l.strict_continuation = !typographic;
    }
    if (byte >= 0xC2 && byte <= 0xDF) l.lead_of_2 = true;
    if (byte >= 0xE0 && byte <= 0xEF) l.lead_of_3 = true;
    if (byte == 0xF0 || byte == 0xF3) l.lead_of_4 = true;  // other leads are of unassigned characters
  };
  for (std::size_t byte = 0x80; byte <= 0xFF; ++byte) {
    note(byte, static_cast<char32_t>(byte));
    for (const CodePage page : kCodePages) {
      if (is_windows(page)) note(byte, kCharacters[static_cast<std::size_t>(page) - 1][byte - 0x80]);
    }
  }
  looks[U' '].continuation = true;
  return looks;
}

}  // namespace

std::optional<std::string> bytes_of(std::u32string_view text, CodePage page) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t c : text) {
    const auto byte = byte_of(c, page);
    if (!byte) return std::nullopt;
    bytes += *byte;
  }
  return bytes;
}

ByteLooks looks_of(char32_t c) {
  static const std::vector<ByteLooks> looks = all_looks();
  return c < looks.size() ? looks[c] : ByteLooks{};
}

}  // namespace vit::internal
