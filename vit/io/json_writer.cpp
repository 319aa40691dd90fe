#include "vit/io/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// \uXXXX.
void append_escape(std::string& out, char32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 0xF];
}

void append_ascii(std::string& out, char32_t code) {
  if (code < 0x10000) return append_escape(out, code);
  append_escape(out, 0xD800 + ((code - 0x10000) >> 10));
  append_escape(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

/// The letter of a control that has one after a backslash; '\0' for others.
char letter_of(char32_t code) {
  switch (code) {
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return '\0';
  }
}

/// The shortest digits of `number` in the notation that std::to_chars() prefers, or in that `format`.
template <typename Number, typename... Format>
std::string digits_of(Number number, Format... format) {
  std::array<char, 64> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, format...).ptr};
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonText encoding) {
  const std::string_view whole = text;
  const bool ascii = encoding == JsonText::ascii;
  out += '"';
  while (!text.empty()) {
    const auto found = first_code_point(text);
    VIT_CHECK(found || !ascii, Where("json", ErrorKind::argument), in_quotes(whole), " is not valid UTF-8");
    const CodePoint decoded = found.value_or(CodePoint{kReplacement, 1});
    const std::string_view bytes = text.substr(0, decoded.bytes);
    if (decoded.code == '"' || decoded.code == '\\') {
      (out += '\\') += bytes;
    } else if (const char letter = letter_of(decoded.code); ascii && letter != '\0') {
      (out += '\\') += letter;
    } else if (decoded.code < 0x20 || decoded.code == 0x7F || (ascii && decoded.code > 0x7F)) {
      append_ascii(out, decoded.code);
    } else if (decoded.code == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out += bytes;
    }
    text.remove_prefix(decoded.bytes);
  }
  out += '"';
}

std::string json_string(std::string_view text, JsonText encoding) {
  std::string out;
  append_json_string(out, text, encoding);
  return out;
}

void append_json_float(std::string& out, float number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  const std::string digits = digits_of(number);
  out += digits;
  if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name, encoding_);
  out_ += layout_ == JsonLayout::compact ? ":" : ": ";
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::on_own_line() {
  own_line_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text, encoding_);
  return *this;
}

JsonWriter& JsonWriter::value(float number) {
  separate();
  append_json_float(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return value(nullptr);
  const double size = std::fabs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e15);
  std::string digits = digits_of(number, is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  if (is_plain && digits.find('.') == std::string::npos) digits += ".0";
  return json(digits);
}

JsonWriter& JsonWriter::json(std::string_view text) {
  separate();
  out_ += text;
  return *this;
}

void JsonWriter::separate() {
  if (has_key_) {
    has_key_ = false;
    return;
  }
  const bool breaks = own_line_ || (layout_ == JsonLayout::indented && depth_ > 0);
  if (!is_first_) out_ += layout_ == JsonLayout::spaced && !breaks ? ", " : ",";
  if (own_line_) {
    out_ += "\n ";
  } else if (breaks) {
    break_line();
  }
  is_first_ = own_line_ = false;
}

void JsonWriter::break_line() {
  (out_ += '\n').append(2 * depth_, ' ');
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  ++depth_;
  is_first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  if (layout_ == JsonLayout::indented && !is_first_) break_line();
  out_ += bracket;
  is_first_ = false;
  return *this;
}

}  // namespace vit::internal
