// UTF-8 that was decoded as Latin-1 or windows-1252 is encoded again and decoded as UTF-8: the whole
// text if every character beyond ASCII is part of a valid sequence, else the runs of such characters.
// Whether the characters are intended is judged only from the sequences (Suspicion), where ftfy uses
// statistics.
#include "vit/text/clean.h"

#include <optional>

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

enum class Table { latin1, windows1252 };

/// The byte that `c` was decoded from; nothing if the table does not have it.
std::optional<char> byte_of(char32_t c, Table table) {
  if (table == Table::windows1252 && c == 0x1A) return std::nullopt;
  if (c < 0x80 || (c >= 0xA0 && c <= 0xFF)) return static_cast<char>(c);
  if (table == Table::windows1252 && c == 0xFFFD) return '\x1A';
  if (table == Table::latin1) return c <= 0xFF ? std::optional(static_cast<char>(c)) : std::nullopt;
  for (char32_t byte = 0x80; byte <= 0x9F; ++byte) {
    if (windows_1252(byte) == c) return static_cast<char>(byte);
  }
  return std::nullopt;
}

std::optional<std::string> bytes_of(std::string_view text, Table table) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = byte_of(next_code_point(text, at), table);
    if (!byte) return std::nullopt;
    bytes += *byte;
  }
  return bytes;
}

/// Continuation bytes and 0x1A, which represents a lost byte.
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80 || byte == '\x1A';
}

/// Bytes of the sequence of UTF-8 at `at` that has more than one; 0 if there is none.
std::size_t sequence(std::string_view bytes, std::size_t at) {
  const auto lead = static_cast<unsigned char>(bytes[at]);
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = character_bytes(bytes[at]);
  if (length > bytes.size() - at) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(bytes[at + i])) return 0;
  }
  const auto second = static_cast<unsigned char>(bytes[at + 1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return second != 0x1A && (overlong || beyond) ? 0 : length;
}

/// Whether UTF-8 sequences are unlikely to be intended as the characters that they look like.
class Suspicion {
 public:
  /// `controls`: bytes 0x80 to 0x9F look like control characters, which are never intended.
  void add(std::string_view bytes, std::size_t at, std::size_t length, bool controls) {
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const auto last = static_cast<unsigned char>(bytes[at + length - 1]);
    const bool in_word = at > 0 && bytes[at - 1] >= 'a' && bytes[at - 1] <= 'z';
    // Capitals with an accent are usually intended before a quote or a dash, but not within words or
    // before a degree sign, plus-minus or exponent. Sequences that start as O, U with an accent or thorn are
    // unchanged.
    const bool capital = lead >= 0xC4 && lead <= 0xDD && lead != 0xD7 && !(lead >= 0xD2 && lead <= 0xD6) &&
                         !(lead >= 0xD9 && lead <= 0xDB);
    const bool telling = length > 2 || lead == 0xC2 || lead == 0xC3 || lead == 0xCE || lead == 0xD0;
    sure_ = sure_ || telling || (controls && last < 0xA0) || last == 0x1A ||
            (capital && (in_word || (last >= 0xB0 && last <= 0xB3)));
    if (capital || lead == 0xD7) ++sequences_;
  }
  bool confirmed() const { return sure_ || sequences_ > 1; }

 private:
  std::size_t sequences_ = 0;
  bool sure_ = false;
};

/// The sequence unchanged, or U+FFFD if bytes of it were lost.
void append_sequence(std::string& result, std::string_view bytes) {
  if (bytes.find('\x1A') == std::string_view::npos) {
    result += bytes;
  } else {
    result += "\uFFFD";
  }
}

/// All of `text`, if each of its bytes beyond ASCII is part of a sequence.
std::optional<std::string> whole(std::string_view text) {
  for (const Table table : {Table::latin1, Table::windows1252}) {
    const auto bytes = bytes_of(text, table);
    if (!bytes) continue;
    std::string result;
    Suspicion suspicion;
    std::size_t at = 0;
    while (at < bytes->size()) {
      const char byte = (*bytes)[at];
      const std::size_t length = sequence(*bytes, at);
      if (length == 0 && static_cast<signed char>(byte) < 0) break;
      if (length == 0) {
        append_sequence(result, std::string_view(*bytes).substr(at++, 1));
        continue;
      }
      suspicion.add(*bytes, at, length, table == Table::latin1);
      append_sequence(result, std::string_view(*bytes).substr(at, length));
      at += length;
    }
    if (at == bytes->size() && suspicion.confirmed()) return result;
  }
  return std::nullopt;
}

/// Runs of sequences within a text that contains other characters as well.
std::string in_parts(std::string_view text) {
  std::string result;
  std::size_t start = 0;
  while (start < text.size()) {
    // The longest run of characters beyond ASCII that windows-1252 has.
    std::size_t end = start;
    std::string bytes;
    bool controls = false;
    while (end < text.size()) {
      std::size_t next = end;
      const char32_t c = next_code_point(text, next);
      auto byte = c < 0x80 ? std::nullopt : byte_of(c, Table::windows1252);
      if (!byte && c >= 0x80) byte = byte_of(c, Table::latin1);
      if (!byte) break;
      controls = controls || (c >= 0x80 && c < 0xA0);
      bytes += *byte;
      end = next;
    }
    std::string fixed;
    Suspicion suspicion;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t length = sequence(bytes, at);
      if (length == 0) break;
      suspicion.add(bytes, at, length, controls);
      append_sequence(fixed, std::string_view(bytes).substr(at, length));
      at += length;
    }
    if (at > 0 && at == bytes.size() && suspicion.confirmed()) {
      result += fixed;
      start = end;
      continue;
    }
    const std::size_t stop = end > start ? end : start + character_bytes(text[start]);
    result += text.substr(start, stop - start);
    start = stop;
  }
  return result;
}

}  // namespace

std::string fix_mojibake(std::string_view text) {
  std::string fixed(text);
  // Each round shortens the text or ends.
  while (!is_ascii(fixed)) {
    std::string next = whole(fixed).value_or(std::string());
    if (next.empty()) next = in_parts(fixed);
    if (next == fixed) break;
    fixed = std::move(next);
  }
  return fixed;
}

}  // namespace vit::internal
