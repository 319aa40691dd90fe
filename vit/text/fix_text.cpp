// The repairs of ftfy, one function each, in its order.
#include <algorithm>
#include <array>
#include <optional>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/text/clean.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

/// Passes every character of `text` to change(result, c), which appends its replacement.
template <typename Change>
std::string each_character(std::string_view text, Change change) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c < 0x80 && c >= 0x20 && c != 0x7F) {
      result += static_cast<char>(c);
    } else {
      change(result, c);
    }
  }
  return result;
}

/// A whole reference, '&' to ';': known names, names that are known in lower case, numbers.
std::string reference(std::string_view whole) {
  const std::string_view name = whole.substr(1);
  if (const auto characters = html_entity(name)) return std::string(*characters);
  if (whole[1] == '#') {
    const std::string decoded = unescape_html(whole);
    return decoded.find(';') == std::string::npos ? decoded : std::string(whole);
  }
  const bool capitals = std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (capitals && unescape_html(whole) == whole) {
    if (const auto characters = html_entity(lower_letters(name))) return upper_text(*characters);
  }
  return std::string(whole);
}

constexpr std::size_t kLongestName = 24;

std::string fix_references(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '&') {
      if (end < text.size() && text[end] == '#') ++end;
      const std::size_t first = end;
      while (end < text.size() && end < first + kLongestName && is_alphanumeric(text[end])) ++end;
      if (end > first && end < text.size() && text[end] == ';') {
        result += reference(text.substr(at, end + 1 - at));
        at = end + 1;
        continue;
      }
    }
    result += text[at++];
  }
  return result;
}

/// Start of the reference that `text`, which ends in a semicolon, ends in; its size if there is none.
std::size_t reference_before(std::string_view text) {
  std::size_t first = text.size() - 1;
  for (std::size_t i = 0; i < kLongestName && first > 0 && is_alphanumeric(text[first - 1]); ++i) --first;
  if (first == text.size() - 1 || first == 0) return text.size();
  if (text[first - 1] == '#' && first > 1) --first;
  return text[first - 1] == '&' ? first - 1 : text.size();
}

std::string fix_c1(std::string_view text) {
  return each_character(text, [](std::string& result, char32_t c) {
    append_utf8(result, c >= 0x80 && c <= 0x9F ? windows_1252(c) : c);
  });
}

std::string_view ligature(char32_t c) {
  switch (c) {
    case 0x132: return "IJ";
    case 0x133: return "ij";
    case 0x149: return "\u02BCn";
    case 0x1F1: return "DZ";
    case 0x1F2: return "Dz";
    case 0x1F3: return "dz";
    case 0x1C4: return "D\u017D";
    case 0x1C5: return "D\u017E";
    case 0x1C6: return "d\u017E";
    case 0x1C7: return "LJ";
    case 0x1C8: return "Lj";
    case 0x1C9: return "lj";
    case 0x1CA: return "NJ";
    case 0x1CB: return "Nj";
    case 0x1CC: return "nj";
    case 0xFB00: return "ff";
    case 0xFB01: return "fi";
    case 0xFB02: return "fl";
    case 0xFB03: return "ffi";
    case 0xFB04: return "ffl";
    case 0xFB05: return "\u017Ft";
    case 0xFB06: return "st";
    default: return {};
  }
}

std::string fix_ligatures(std::string_view text) {
  return each_character(text, [](std::string& result, char32_t c) {
    const std::string_view letters = ligature(c);
    if (letters.empty()) {
      append_utf8(result, c);
    } else {
      result += letters;
    }
  });
}

std::string fix_width(std::string_view text) {
  return each_character(text, [](std::string& result, char32_t c) {
    if (c == 0x3000) {
      result += ' ';
    } else if (c >= 0xFF01 && c <= 0xFFEF) {
      std::string alone;
      append_utf8(alone, c);
      result += normalize_nfkc(alone);
    } else {
      append_utf8(result, c);
    }
  });
}

std::string fix_quotes(std::string_view text) {
  return each_character(text, [](std::string& result, char32_t c) {
    if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B)) {
      result += '\'';
    } else if (c >= 0x201C && c <= 0x201F) {
      result += '"';
    } else {
      append_utf8(result, c);
    }
  });
}

std::string fix_line_ends(std::string_view text) {
  const std::string joined = replace_all(text, "\r\n", "\n");
  return each_character(joined, [](std::string& result, char32_t c) {
    append_utf8(result, c == '\r' || c == 0x2028 || c == 0x2029 || c == 0x85 ? U'\n' : c);
  });
}

/// ESC [ digits and semicolons letter.
std::string remove_terminal_escapes(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("\033[")) {
      std::size_t end = at + 2;
      for (std::size_t next = end; next < text.size(); end = next) {
        const char32_t c = next_code_point(text, next);
        if (c != U';' && !is_decimal_digit(c)) break;
      }
      if (end < text.size() && is_alphanumeric(text[end]) && !(text[end] >= '0' && text[end] <= '9')) {
        at = end + 1;
        continue;
      }
    }
    result += text[at++];
  }
  return result;
}

std::string remove_controls(std::string_view text) {
  return each_character(text, [](std::string& result, char32_t c) {
    const bool dropped = c <= 0x08 || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                         (c >= 0x206A && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
    if (!dropped) append_utf8(result, c);
  });
}

/// Whether the repairs leave ASCII text unchanged, apart from its references.
bool is_settled(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= 0x20 && c < 0x7F) || c == '\t' || c == '\n' || c == '\f'; });
}

/// All references of a settled text, and those that arise from them, if they stay settled. References never
/// overlap, so the order does not matter and one pass is enough, however deep they are nested.
std::optional<std::string> resolve_references(std::string_view text) {
  std::string result, pending;  // `pending`: what references became, last character first
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size() || !pending.empty();) {
    const char c = pending.empty() ? text[at++] : pending.back();
    if (!pending.empty()) pending.pop_back();
    result += c;
    if (c != ';') continue;
    const std::size_t start = reference_before(result);
    if (start == result.size()) continue;
    const std::string whole = result.substr(start);
    const std::string characters = reference(whole);
    if (characters == whole) continue;
    if (!is_settled(characters)) return std::nullopt;
    result.resize(start);
    pending.append(characters.rbegin(), characters.rend());
  }
  return result;
}

std::string fix_line(std::string text, bool references) {
  Effort effort(text.size());
  for (;;) {
    if (is_settled(text)) {
      if (!references) return text;
      if (auto resolved = resolve_references(text)) return std::move(*resolved);
    }
    const std::string before = text;
    effort.spend(text.size());
    if (references) text = fix_references(text);
    if (is_ascii(text)) {
      // Of the other repairs only these three concern ASCII.
      text = remove_controls(remove_terminal_escapes(fix_line_ends(text)));
    } else {
      text = fix_width(fix_ligatures(fix_c1(fix_mojibake(text, effort))));
      text = remove_controls(remove_terminal_escapes(fix_line_ends(fix_quotes(text))));
      text = normalize_nfc(text);
    }
    if (text == before) return text;
  }
}

/// End of the segment that starts at `start`: a line, or a million characters of it.
std::size_t segment_end(std::string_view text, std::size_t start) {
  constexpr std::size_t kMost = 1'000'000;
  const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
  if (end - start <= kMost) return end;
  std::size_t at = start;
  for (std::size_t count = 0; count < kMost && at < end; ++count) at += character_bytes(text[at]);
  return at;
}

}  // namespace

void Effort::spend(std::size_t characters) {
  VIT_CHECK(characters <= left_, (Where{"tokenize", ErrorKind::argument}),
            "a line of the text takes too many repairs, one after the other: references or wrong tables are "
            "nested too deep");
  left_ -= characters;
}

std::string fix_text(std::string_view text) {
  std::string result;
  bool references = true;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = segment_end(text, start);
    const std::string_view line = text.substr(start, end - start);
    // Text with tags is HTML to be decoded elsewhere.
    references = references && line.find('<') == std::string_view::npos;
    result += fix_line(std::string(line), references);
    start = end;
  }
  return result;
}

}  // namespace vit::internal
