#include "vit/text/bert_words.h"

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

struct Range {
  char32_t first, last;
};

/// Of the blocks of ideographs at the time; the library starts extension E with U+2B920 instead of U+2B820.
constexpr Range kIdeographs[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                 {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                 {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};

bool is_ideograph(char32_t c) {
  for (const Range& range : kIdeographs) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

bool is_break(char32_t c) {
  return c == U'\t' || c == U'\n' || c == U'\r';
}

// The library's classes are those of Unicode 8; later releases changed those of some characters.
bool is_old_punctuation(char32_t c) {
  return (is_punctuation(c) && is_of_unicode_8(c)) || c == 0x166D || c == 0x111C9;
}

bool is_old_mark(char32_t c) {
  const bool later = c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9;
  return (is_nonspacing_mark(c) && is_of_unicode_8(c) && !later) || c == 0x1734;
}

bool is_bert_punctuation(char32_t c) {
  const bool ascii_symbol = (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') ||
                            (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
  return ascii_symbol || is_old_punctuation(c);
}

/// Calls visit(character, its bytes) for each character.
template <typename Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    visit(c, text.substr(start, at - start));
  }
}

}  // namespace

std::string clean_bert(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](char32_t c, std::string_view bytes) {
    if (c == 0 || c == 0xFFFD || (!is_break(c) && is_control(c) && is_of_unicode_8(c))) return;
    if (is_break(c) || is_white_space(c)) {
      result += ' ';
    } else {
      result += bytes;
    }
  });
  return result;
}

std::string space_ideographs(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](char32_t c, std::string_view bytes) {
    if (!is_ideograph(c)) {
      result += bytes;
      return;
    }
    result += ' ';
    result += bytes;
    result += ' ';
  });
  return result;
}

std::string strip_accents(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::string result;
  for_each_character(normalize_nfd(text), [&](char32_t c, std::string_view bytes) {
    if (!is_old_mark(c)) result += bytes;
  });
  return result;
}

std::vector<std::string_view> bert_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t start = 0, at = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > start) words.push_back(text.substr(start, end - start));
  };
  while (at < text.size()) {
    const std::size_t here = at;
    const char32_t c = next_code_point(text, at);
    const bool space = is_white_space(c);
    if (!space && !is_bert_punctuation(c)) continue;
    end_word(here);
    if (!space) words.push_back(text.substr(here, at - here));
    start = at;
  }
  end_word(text.size());
  return words;
}

}  // namespace vit::internal
