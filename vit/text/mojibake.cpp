// UTF-8 that was decoded with a table of one byte per character is encoded again and decoded as UTF-8: the
// whole text with the first table that this is possible with, else the runs that look like UTF-8. The steps
// of ftfy.
#include <algorithm>
#include <optional>

#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/text/badness.h"
#include "vit/text/clean.h"
#include "vit/text/code_pages.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

/// Bytes from a position on, compared as numbers; beyond the end there are none of a range.
class Bytes {
 public:
  Bytes(std::string_view all, std::size_t at) : rest_(all.substr(at)) {}
  bool is(std::size_t i, unsigned first, unsigned last) const {
    return i < rest_.size() && number(i) >= first && number(i) <= last;
  }
  bool is(std::size_t i, char byte) const { return i < rest_.size() && rest_[i] == byte; }
  bool is_one_of(std::size_t i, std::string_view bytes) const {
    return i < rest_.size() && bytes.find(rest_[i]) != std::string_view::npos;
  }
  bool continues(std::size_t i) const { return is(i, 0x80, 0xBF); }
  std::string_view from(std::size_t i) const { return rest_.substr(std::min(i, rest_.size())); }
  std::size_t size() const { return rest_.size(); }
  unsigned number(std::size_t i) const { return static_cast<unsigned char>(rest_[i]); }

 private:
  std::string_view rest_;
};

/// Length of a sequence of UTF-8 in which a space is where byte 0xA0 was, 0 if there is none. Which leads may
/// be followed by it depends on the characters that result.
std::size_t spaced_sequence(const Bytes& bytes) {
  // 0x85 is an ellipsis, 0xA0 itself needs no repair.
  const auto inner = [&](std::size_t i) { return bytes.continues(i) && !bytes.is_one_of(i, "\x85\xA0"); };
  const auto space = [&](std::size_t i) { return bytes.is(i, ' '); };
  const auto any = [&](std::size_t i) { return bytes.continues(i); };
  if (bytes.is_one_of(0, "\xC2\xC3\xC5\xCE\xD0\xD9") && space(1)) return 2;
  if (bytes.is(0, 0xE2, 0xE3) && space(1) && inner(2)) return 3;
  if (bytes.is(0, 0xE0, 0xE3) && inner(1) && space(2)) return 3;
  if (!bytes.is(0, '\xF0')) return 0;
  const bool one =
      (space(1) && any(2) && any(3)) || (any(1) && space(2) && any(3)) || (any(1) && any(2) && space(3));
  return one ? 4 : 0;
}

/// "\xC3 " is a letter a with a grave accent that is a word of its own, and its space is kept, unless one of
/// these Portuguese words follows.
bool is_a_alone(const Bytes& bytes) {
  if (!bytes.is(0, '\xC3') || !bytes.is(1, ' ')) return false;
  for (const std::string_view start : {" ", "quele", "quela", "quilo", "s "}) {
    if (bytes.from(2).starts_with(start)) return false;
  }
  return true;
}

/// Byte 0xA0 back in the place of spaces.
std::string restore_spaces(std::string_view bytes) {
  std::string words;
  words.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (is_a_alone({bytes, at})) {
      words += "\xC3\xA0 ";
      ++at;
    } else {
      words += bytes[at];
    }
  }
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t length = spaced_sequence({words, at});
    std::replace(words.begin() + static_cast<std::ptrdiff_t>(at),
                 words.begin() + static_cast<std::ptrdiff_t>(at + length), ' ', '\xA0');
    at += std::max<std::size_t>(length, 1);
  }
  return words;
}

/// Length of a sequence of UTF-8 that lost some of its continuation bytes, one of which may be a question
/// mark.
std::size_t lossy_sequence(const Bytes& bytes) {
  const auto lost = [&](std::size_t i) { return bytes.is(i, kLostByte); };
  const auto marked = [&](std::size_t i) { return lost(i) || bytes.is(i, '?'); };
  const auto some = [&](std::size_t i) { return lost(i) || bytes.continues(i); };
  const auto any = [&](std::size_t i) { return marked(i) || bytes.continues(i); };
  if (bytes.is(0, 0xC2, 0xDF) && lost(1)) return 2;
  if (bytes.is(0, 0xC2, 0xC3) && bytes.is(1, '?')) return 2;
  // A pair of surrogates.
  const bool pair =
      bytes.is(0, '\xED') && bytes.is(1, 0xA0, 0xAF) && bytes.is(3, '\xED') && bytes.is(4, 0xB0, 0xBF);
  if (pair && ((marked(2) && any(5)) || (any(2) && marked(5)))) return 6;
  if (bytes.is(0, 0xE0, 0xEF) && ((marked(1) && some(2)) || (some(1) && marked(2)))) return 3;
  if (bytes.is(0, 0xF0, 0xF4) && ((marked(1) && some(2) && some(3)) || (some(1) && marked(2) && some(3)) ||
                                  (some(1) && some(2) && marked(3)))) {
    return 4;
  }
  return lost(0) ? 1 : 0;
}

std::string replace_lossy(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = lossy_sequence({bytes, at});
    if (length > 0) {
      result += kReplacement;
    } else {
      result += bytes[at];
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

/// UTF-8 of what other programs write: Java's zero of two bytes, and surrogates in three bytes each. As in
/// ftfy a line feed at the end of the text is taken for the last byte of either.
std::string plain_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const Bytes here(bytes, at);
    const auto last = [&](std::size_t i) { return i + 1 == here.size() && here.is(i, '\n'); };
    if (here.is(0, '\xC0') && (here.is(1, '\x80') || last(1))) {
      result += '\0';
      at += 2;
    } else if (here.is(0, '\xED') && here.is(1, 0xA0, 0xAF) && here.continues(2) && here.is(3, '\xED') &&
               here.is(4, 0xB0, 0xBF) && (here.continues(5) || last(5))) {
      append_utf8(result, 0x10000 + ((here.number(1) & 0x0Fu) << 16) + ((here.number(2) & 0x3Fu) << 10) +
                              ((here.number(4) & 0x0Fu) << 6) + (here.number(5) & 0x3Fu));
      at += 6;
    } else {
      result += bytes[at++];
    }
  }
  return result;
}

std::u32string code_points(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) result += next_code_point(text, at);
  return result;
}

std::string utf8_of(std::u32string_view text) {
  std::string result;
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

/// The bytes of a text under a page as UTF-8, if they are it but for bytes that were replaced or lost.
std::optional<std::u32string> decoded(std::string bytes, CodePage page) {
  // In Mac Roman a dash in front of a space would look like a spaced sequence.
  if (page != CodePage::mac_roman) bytes = restore_spaces(bytes);
  if (is_windows(page)) bytes = replace_lossy(bytes);
  if (bytes.find_first_of("\xC0\xED") != std::string::npos) bytes = plain_utf8(bytes);
  return is_utf8(bytes) ? std::optional(code_points(bytes)) : std::nullopt;
}

/// Characters of the run of sequences at `at` that look like UTF-8.
std::size_t look_alikes(std::u32string_view text, std::size_t at) {
  if (at > 0 && looks_of(text[at - 1]).strict_continuation) return 0;
  const auto continues = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      if (i >= text.size() || !looks_of(text[i]).continuation) return false;
    }
    return true;
  };
  std::size_t end = at;
  while (end < text.size()) {
    const ByteLooks lead = looks_of(text[end]);
    if (lead.lead_of_2 && continues(end + 1, 1)) {
      end += 2;
    } else if (lead.lead_of_3 && continues(end + 1, 2)) {
      end += 3;
    } else if (lead.lead_of_4 && continues(end + 1, 3)) {
      end += 4;
    } else {
      break;
    }
  }
  return end - at;
}

std::u32string fix(std::u32string text, Effort& effort);

/// Each run that looks like UTF-8 repaired by itself.
std::u32string fix_runs(std::u32string_view text, Effort& effort) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = look_alikes(text, at);
    const std::u32string_view run = text.substr(at, std::max<std::size_t>(length, 1));
    // A run that is the whole text has been tried.
    if (length > 0 && length < text.size() && is_bad(run)) {
      result += fix(std::u32string(run), effort);
    } else {
      result += run;
    }
    at += run.size();
  }
  return result;
}

/// C1 controls as the characters that windows-1252 has in their places.
std::u32string without_controls(std::u32string text) {
  for (char32_t& c : text) {
    if (c >= 0x80 && c <= 0x9F) c = windows_1252(c);
  }
  return text;
}

std::u32string fix_step(const std::u32string& text, Effort& effort) {
  const bool ascii = std::ranges::all_of(text, [](char32_t c) { return c < 0x80; });
  if (ascii || !is_bad(text)) return text;
  for (const CodePage page : kCodePages) {
    const auto bytes = bytes_of(text, page);
    if (!bytes) continue;
    if (auto result = decoded(*bytes, page)) return std::move(*result);
  }
  std::u32string runs = fix_runs(text, effort);
  return runs != text ? runs : without_controls(text);
}

/// Steps until one changes nothing.
std::u32string fix(std::u32string text, Effort& effort) {
  for (;;) {
    effort.spend(text.size());
    std::u32string next = fix_step(text, effort);
    if (next == text) return text;
    text = std::move(next);
  }
}

}  // namespace

std::string fix_mojibake(std::string_view text, Effort& effort) {
  return is_ascii(text) ? std::string(text) : utf8_of(fix(code_points(text), effort));
}

}  // namespace vit::internal
