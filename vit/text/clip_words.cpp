// The regular expressions of CLIP's tokenizers and of GPT-2's as scans.
#include "vit/text/clip_words.h"

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

/// One letter of a pattern, ignoring case. Characters whose simple case folding is ASCII are the
/// Kelvin sign and the long s.
char32_t folded(char32_t c) {
  if (c >= U'A' && c <= U'Z') return c + (U'a' - U'A');
  return c == U'\u017F' ? U's' : c == U'\u212A' ? U'k' : c;
}

/// Length of what matches `pattern` (ASCII, lower case) at the start of `text`; 0 if it does not match.
std::size_t matched(std::string_view text, std::string_view pattern, bool ignore_case) {
  if (!ignore_case) return text.starts_with(pattern) ? pattern.size() : 0;
  std::size_t at = 0;
  for (const char expected : pattern) {
    if (at >= text.size() || folded(next_code_point(text, at)) != static_cast<unsigned char>(expected))
      return 0;
  }
  return at;
}

enum class Kind { space, letter, number, other };

Kind kind_of(char32_t c) {
  if (c < 0x80) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::number;
    return c == ' ' || (c >= '\t' && c <= '\r') ? Kind::space : Kind::other;
  }
  return is_letter(c)        ? Kind::letter
         : is_number(c)      ? Kind::number
         : is_white_space(c) ? Kind::space
                             : Kind::other;
}

std::size_t fixed_match(std::string_view text, const ClipPattern& pattern) {
  for (const std::string* special : {&pattern.start, &pattern.end}) {
    if (special->empty()) continue;
    if (const std::size_t length = matched(text, *special, pattern.ignore_case)) return length;
  }
  if (text[0] != '\'') return 0;
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (const std::size_t length = matched(text, ending, pattern.ignore_case)) return length;
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> clip_words(std::string_view text, const ClipPattern& pattern) {
  // Ignoring case, Python's package regex takes the Greek subscript, a mark, for the letter iota where
  // letters are excluded, and for no letter where they are sought, so that it is dropped.
  const auto kind_in_text = [&pattern](char32_t c) {
    return pattern.ignore_case && c == U'\u0345' ? Kind::space : kind_of(c);
  };
  std::vector<std::string_view> words;
  for (std::size_t start = 0; start < text.size();) {
    if (const std::size_t length = fixed_match(text.substr(start), pattern)) {
      words.push_back(text.substr(start, length));
      start += length;
      continue;
    }
    std::size_t end = start;
    const Kind kind = kind_in_text(next_code_point(text, end));
    while (end < text.size() && (kind == Kind::letter || kind == Kind::other)) {
      std::size_t next = end;
      if (kind_in_text(next_code_point(text, next)) != kind) break;
      end = next;
    }
    if (kind != Kind::space) words.push_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

std::vector<std::string_view> gpt2_words(std::string_view text) {
  std::vector<std::string_view> words;
  const auto kind_at = [&](std::size_t& at) { return kind_of(next_code_point(text, at)); };
  const auto end_of_run = [&](std::size_t from, Kind kind) {
    for (std::size_t next = from; next < text.size(); from = next) {
      if (kind_at(next) != kind) return from;
    }
    return text.size();
  };
  for (std::size_t start = 0; start < text.size();) {
    std::size_t end = start + fixed_match(text.substr(start), {});
    if (end == start) {
      std::size_t first = text[start] == ' ' && start + 1 < text.size() ? start + 1 : start;
      std::size_t ignored = first;
      if (kind_at(ignored) == Kind::space) first = start;
      ignored = first;
      const Kind kind = kind_at(ignored);
      end = end_of_run(first, kind);
      if (kind == Kind::space &&
          end < text.size()) {  // the last character belongs to what follows, if it can
        std::size_t last = start;
        for (std::size_t at = start; at < end; next_code_point(text, at)) last = at;
        if (last > start) end = last;
      }
    }
    words.push_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

std::array<unsigned char, 256> byte_order() {
  const auto stands_for_itself = [](std::size_t byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  };
  std::array<unsigned char, 256> order{};
  std::size_t count = 0;
  for (const bool itself : {true, false}) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (stands_for_itself(byte) == itself) order[count++] = static_cast<unsigned char>(byte);
    }
  }
  return order;
}

const std::array<std::string, 256>& byte_symbols() {
  static const std::array<std::string, 256> symbols = [] {
    constexpr std::size_t kThemselves = 188;
    std::array<std::string, 256> made;
    const auto order = byte_order();
    for (std::size_t i = 0; i < order.size(); ++i) {
      append_utf8(made[order[i]],
                  static_cast<char32_t>(i < kThemselves ? order[i] : 0x100 + i - kThemselves));
    }
    return made;
  }();
  return symbols;
}

ByteSymbols find_byte_symbols(const Vocabulary& vocabulary, WordEnds ends) {
  ByteSymbols found;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    found.inner[byte] = vocabulary.at(byte_symbols()[byte]);
    found.last[byte] =
        ends == WordEnds::none ? found.inner[byte] : vocabulary.at(byte_symbols()[byte] + "</w>");
  }
  return found;
}

}  // namespace vit::internal
