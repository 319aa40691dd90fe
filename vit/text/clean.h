// Cleaning of captions as open_clip does it before its tokenizers, with the repairs of the package ftfy.
//
// Everything of ftfy.fix_text is done except the repair of text that was decoded with the wrong table
// ("mojibake"): that is done if UTF-8 was read as Latin-1 or windows-1252 (see fix_text()), but not
// for other tables and for text that is broken in part, which needs ftfy's statistics of characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

/// open_clip's names of what follows the repairs.
enum class Cleaning {
  none,
  lower,         // white space to single spaces, lower case
  whitespace,    // white space to single spaces
  canonicalize,  // '_' to space, punctuation of ASCII removed, lower case, white space to single spaces
};

/// `text` must be valid UTF-8.
std::string clean(std::string_view text, Cleaning cleaning);

/// Repairs line by line until nothing changes: character references with semicolon, mojibake, C1 controls,
/// ligatures of Latin letters, full and half width forms, curly quotes, line ends, escapes of terminals,
/// control characters, NFC.
std::string fix_text(std::string_view text);

/// Removes the 32 punctuation characters of ASCII.
std::string remove_punctuation(std::string_view text);

/// Repairs UTF-8 that was decoded as Latin-1 or windows-1252.
std::string fix_mojibake(std::string_view text);

/// The characters of a name with its semicolon if it has one ("amp;", "amp").
std::optional<std::string_view> html_entity(std::string_view name);

/// html.unescape: names without semicolon by their longest known start, bytes 128 to 159 as windows-1252,
/// U+FFFD for 0, surrogates and numbers beyond Unicode, nothing for other controls and noncharacters.
std::string unescape_html(std::string_view text);

/// What a byte from 0x80 to 0x9F is in windows-1252; itself if undefined.
char32_t windows_1252(char32_t byte);

}  // namespace vit::internal
