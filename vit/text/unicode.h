// Unicode as the tokenizers need it, over ICU: code points of UTF-8, normal forms, lower case, classes,
// clusters. The other files decide which of them a tokenizer uses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/utf8.h"

namespace vit::internal {

/// Throws Error unless `text` is valid UTF-8 of a length that ICU supports.
void check_utf8(std::string_view text);

/// Code point that starts at `text[position]`, which is advanced past it. The text must be valid UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& position);

/// Bytes of the character that `first` starts in valid UTF-8.
constexpr std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool is_ascii(std::string_view text);

std::string normalize_nfc(std::string_view text);
std::string normalize_nfd(std::string_view text);
std::string normalize_nfkc(std::string_view text);

/// Lower case of a text with its context, as Python's str.lower: a sigma at the end of a word becomes final.
std::string lower_text(std::string_view text);
/// Lower case of each letter separately, as in Rust's char::to_lowercase.
std::string lower_letters(std::string_view text);
std::string upper_text(std::string_view text);

bool is_letter(char32_t c);           // \p{L}
bool is_number(char32_t c);           // \p{N}
bool is_decimal_digit(char32_t c);    // \p{Nd}
bool is_punctuation(char32_t c);      // \p{P}
bool is_control(char32_t c);          // Cc, Cf, Co, Cs: \p{C} but for unassigned ones
bool is_nonspacing_mark(char32_t c);  // \p{Mn}
bool is_of_unicode_8(char32_t c);     // assigned in Unicode 8 or before
bool is_white_space(char32_t c);      // White_Space
bool is_python_space(char32_t c);     // str.isspace: White_Space and U+001C to U+001F

/// White space as in Python's str.split: runs become one space, none is left at the ends.
std::string join_words(std::string_view text);
/// Without Python's white space at both ends.
std::string_view strip_python(std::string_view text);
/// Without White_Space at the start or the end.
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

/// Ends of the extended grapheme clusters of a valid text, in bytes.
std::vector<std::size_t> cluster_ends(std::string_view text);

/// Every `from` becomes `to`; `from` is not empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace vit::internal
