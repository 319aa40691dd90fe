// Plain strings over ICU's C interface.
#include "vit/text/unicode.h"

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utext.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "vit/base/ascii.h"
#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"tokenize", ErrorKind::argument};

void check_icu(UErrorCode status, const char* what) {
  VIT_CHECK(U_SUCCESS(status), kWhere.with(ErrorKind::io), what, " failed in ICU: ", u_errorName(status));
}

std::u16string to_utf16(std::string_view text) {
  // At most one unit per byte.
  std::u16string wide(text.size(), u'\0');
  std::int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strFromUTF8(wide.data(), static_cast<std::int32_t>(wide.size()), &length, text.data(),
                static_cast<std::int32_t>(text.size()), &status);
  check_icu(status, "conversion from UTF-8");
  wide.resize(static_cast<std::size_t>(length));
  return wide;
}

std::string to_utf8(std::u16string_view wide) {
  std::string text(3 * wide.size(), '\0');
  std::int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strToUTF8(text.data(), static_cast<std::int32_t>(text.size()), &length, wide.data(),
              static_cast<std::int32_t>(wide.size()), &status);
  check_icu(status, "conversion to UTF-8");
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// Calls convert(destination, capacity, status), which returns the length it needs, until it fits.
template <typename Convert>
std::u16string converted(std::size_t first_guess, const char* what, Convert convert) {
  std::u16string result(first_guess, u'\0');
  for (;;) {
    UErrorCode status = U_ZERO_ERROR;
    const std::int32_t length = convert(result.data(), static_cast<std::int32_t>(result.size()), &status);
    if (status == U_BUFFER_OVERFLOW_ERROR) {
      result.resize(static_cast<std::size_t>(length));
      continue;
    }
    check_icu(status, what);
    result.resize(static_cast<std::size_t>(length));
    return result;
  }
}

std::string normalize(std::string_view text, const UNormalizer2* normalizer) {
  const std::u16string wide = to_utf16(text);
  return to_utf8(converted(
      wide.size() + 16, "normalization", [&](char16_t* to, std::int32_t capacity, UErrorCode* status) {
        return unorm2_normalize(normalizer, wide.data(), static_cast<std::int32_t>(wide.size()), to, capacity,
                                status);
      }));
}

struct CloseBreaks {
  void operator()(UBreakIterator* breaks) const { ubrk_close(breaks); }
};
struct CloseText {
  void operator()(UText* text) const { utext_close(text); }
};

}  // namespace

void check_utf8(std::string_view text) {
  VIT_CHECK(text.size() <= std::size_t{std::numeric_limits<std::int32_t>::max()} / 4, kWhere, "a text of ",
            text.size(), " bytes is too long");
  const std::size_t valid = valid_utf8_bytes(text);
  VIT_CHECK(valid == text.size(), kWhere, "the text is not valid UTF-8, from byte ", valid);
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char first = bytes[position];
  if (first < 0x80) {
    ++position;
    return first;
  }
  const std::size_t length = character_bytes(static_cast<char>(first));
  char32_t c = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) c = (c << 6) | (bytes[position + i] & 0x3Fu);
  position += length;
  return c;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

std::string normalize_nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* const normalizer = unorm2_getNFCInstance(&status);
  check_icu(status, "NFC");
  return normalize(text, normalizer);
}

std::string normalize_nfd(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* const normalizer = unorm2_getNFDInstance(&status);
  check_icu(status, "NFD");
  return normalize(text, normalizer);
}

std::string normalize_nfkc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* const normalizer = unorm2_getNFKCInstance(&status);
  check_icu(status, "NFKC");
  return normalize(text, normalizer);
}

std::string lower_text(std::string_view text) {
  if (is_ascii(text)) return lower_ascii(text);
  const std::u16string wide = to_utf16(text);
  return to_utf8(
      converted(wide.size() + 16, "lower case", [&](char16_t* to, std::int32_t capacity, UErrorCode* status) {
        return u_strToLower(to, capacity, wide.data(), static_cast<std::int32_t>(wide.size()), "", status);
      }));
}

std::string upper_text(std::string_view text) {
  const std::u16string wide = to_utf16(text);
  return to_utf8(
      converted(wide.size() + 16, "upper case", [&](char16_t* to, std::int32_t capacity, UErrorCode* status) {
        return u_strToUpper(to, capacity, wide.data(), static_cast<std::int32_t>(wide.size()), "", status);
      }));
}

std::string lower_letters(std::string_view text) {
  if (is_ascii(text)) return lower_ascii(text);
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == U'\u0130') {
      // The one letter whose lower case is two characters; u_tolower knows single ones only.
      result += "i\u0307";
    } else {
      append_utf8(result, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
    }
  }
  return result;
}

bool is_letter(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_L_MASK) != 0;
}

bool is_number(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_N_MASK) != 0;
}

bool is_punctuation(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_P_MASK) != 0;
}

bool is_control(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & (U_GC_C_MASK & ~U_GC_CN_MASK)) != 0;
}

bool is_of_unicode_8(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && age[0] <= 8;
}

bool is_nonspacing_mark(char32_t c) {
  return u_charType(static_cast<UChar32>(c)) == U_NON_SPACING_MARK;
}

bool is_decimal_digit(char32_t c) {
  return u_charType(static_cast<UChar32>(c)) == U_DECIMAL_DIGIT_NUMBER;
}

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

bool is_python_space(char32_t c) {
  return (c >= 0x1C && c <= 0x1F) || is_white_space(c);
}

std::string join_words(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool pending = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if (is_python_space(next_code_point(text, at))) {
      pending = !result.empty();
      continue;
    }
    if (pending) result += ' ';
    pending = false;
    result += text.substr(start, at - start);
  }
  return result;
}

namespace {

using Class = bool (*)(char32_t);

std::string_view without_left(std::string_view text, Class drop) {
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size(); start = at) {
    if (!drop(next_code_point(text, at))) break;
  }
  return text.substr(start);
}

std::string_view without_right(std::string_view text, Class drop) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t start = end - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0u) == 0x80) --start;
    std::size_t at = start;
    if (!drop(next_code_point(text, at))) break;
    end = start;
  }
  return text.substr(0, end);
}

}  // namespace

std::string_view strip_python(std::string_view text) {
  return without_left(without_right(text, is_python_space), is_python_space);
}

std::string_view strip_left(std::string_view text) {
  return without_left(text, is_white_space);
}

std::string_view strip_right(std::string_view text) {
  return without_right(text, is_white_space);
}

std::vector<std::size_t> cluster_ends(std::string_view text) {
  std::vector<std::size_t> ends;
  ends.reserve(text.size());
  if (is_ascii(text)) {
    // One cluster per character, except a carriage return with its line feed.
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (!(text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n')) ends.push_back(at + 1);
    }
    return ends;
  }
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UText, CloseText> source(
      utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status));
  const std::unique_ptr<UBreakIterator, CloseBreaks> breaks(
      ubrk_open(UBRK_CHARACTER, "", nullptr, 0, &status));
  check_icu(status, "grapheme clusters");
  ubrk_setUText(breaks.get(), source.get(), &status);
  check_icu(status, "grapheme clusters");
  for (std::int32_t end = ubrk_next(breaks.get()); end != UBRK_DONE; end = ubrk_next(breaks.get())) {
    ends.push_back(static_cast<std::size_t>(end));
  }
  return ends;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  std::size_t start = 0;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, start)) {
    result.append(text, start, at - start);
    result += to;
    start = at + from.size();
  }
  result.append(text, start);
  return result;
}

}  // namespace vit::internal
