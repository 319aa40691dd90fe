// Tables of one byte per character that texts were decoded with by mistake, and which characters their bytes
// look like where UTF-8 was meant.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

/// In the order in which they are tried.
enum class CodePage : std::uint8_t {
  latin1,
  windows1252,
  windows1251,
  windows1250,
  windows1253,
  windows1254,
  windows1257,
  latin2,
  mac_roman,
  cp437,
};
constexpr std::array kCodePages = {CodePage::latin1,      CodePage::windows1252, CodePage::windows1251,
                                   CodePage::windows1250, CodePage::windows1253, CodePage::windows1254,
                                   CodePage::windows1257, CodePage::latin2,      CodePage::mac_roman,
                                   CodePage::cp437};

/// Under Windows pages this byte represents U+FFFD, of which it is not known what it was.
constexpr char kLostByte = '\x1A';

/// Bytes that these pages leave undefined stay what they are in Latin-1.
constexpr bool is_windows(CodePage page) {
  return page >= CodePage::windows1252 && page <= CodePage::windows1257;
}

/// The bytes that become `text` under `page`; nothing if it lacks a character.
std::optional<std::string> bytes_of(std::u32string_view text, CodePage page);

/// What the bytes of UTF-8 look like under Latin-1 or a Windows page.
struct ByteLooks {
  bool lead_of_2 : 1, lead_of_3 : 1, lead_of_4 : 1;
  bool continuation : 1;         // a space as well, which replaces byte 0xA0
  bool strict_continuation : 1;  // without the space, dashes, quotes, bullet and ellipsis
};
ByteLooks looks_of(char32_t c);

}  // namespace vit::internal
