// Cleaning of captions as open_clip does it before its tokenizers, with the repairs of the package ftfy.
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

/// Bounds the repairs of one line, which are repeated until nothing changes: 64 passes over it, more if it is
/// short.
class Effort {
 public:
  explicit Effort(std::size_t line) : left_((std::size_t{1} << 24) + 64 * line) {}
  /// Throws Error if this is too much.
  void spend(std::size_t characters);

 private:
  std::size_t left_;
};

/// Repairs line by line until nothing changes: character references with semicolon, mojibake, C1 controls,
/// ligatures of Latin letters, full and half width forms, curly quotes, line ends, escapes of terminals,
/// control characters, NFC. Throws Error if a line takes too many repairs.
std::string fix_text(std::string_view text);

/// Removes the 32 punctuation characters of ASCII.
std::string remove_punctuation(std::string_view text);

/// Repairs UTF-8 that was decoded with a table of one byte per character (code_pages.h).
std::string fix_mojibake(std::string_view text, Effort& effort);

/// The characters of a name with its semicolon if it has one ("amp;", "amp").
std::optional<std::string_view> html_entity(std::string_view name);

/// html.unescape: names without semicolon by their longest known start, bytes 128 to 159 as windows-1252,
/// U+FFFD for 0, surrogates and numbers beyond Unicode, nothing for other controls and noncharacters.
std::string unescape_html(std::string_view text);

/// What a byte from 0x80 to 0x9F is in windows-1252; itself if undefined.
char32_t windows_1252(char32_t byte);

}  // namespace vit::internal
