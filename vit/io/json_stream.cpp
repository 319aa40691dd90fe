// The grammar of RFC 8259, one value at a time.
#include "vit/io/json_stream.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "vit/base/ascii.h"
#include "vit/base/utf8.h"

namespace vit::internal {
namespace {

/// Of a number that a double cannot hold: whether it is too small, rather than too large.
bool is_too_small(std::string_view number) {
  const std::size_t length = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, length);
  std::string_view power = number.substr(std::min(length + 1, number.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec ==
      std::errc::result_out_of_range)
    return power.starts_with('-');
  constexpr std::int64_t kLongest = std::int64_t{1} << 60;  // more than there can be digits
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), length));
  const auto first = static_cast<std::int64_t>(std::min(digits.find_first_of("123456789"), length));
  return std::clamp(exponent, -kLongest, kLongest) < first - point;
}

}  // namespace

void JsonStream::fail_here(std::string_view what) const {
  fail(where_, name_, ": ", what, ", at byte ", at_);
}

void JsonStream::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++at_;
  }
}

char JsonStream::take() {
  if (at_ >= text_.size()) fail_here("the text ends too early; was it cut off?");
  return text_[at_++];
}

char JsonStream::peek() {
  skip_space();
  if (at_ >= text_.size()) fail_here("the text ends too early; was it cut off?");
  const char c = text_[at_];
  if (c == '-' || (c >= '0' && c <= '9')) return '0';
  if (c != '{' && c != '[' && c != '"' && c != 't' && c != 'f' && c != 'n') fail_here("expected a value");
  return c;
}

bool JsonStream::skip_nonfinite() {
  skip_space();
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return true;
  }
  return false;
}

void JsonStream::enter(char open, std::string_view wanted) {
  if (peek() != open) fail_here(wanted);
  VIT_CHECK(first_.size() < max_depth_, where_.with(ErrorKind::unsupported), name_, ": nested deeper than ",
            max_depth_, ", at byte ", at_);
  ++at_;
  first_.push_back(true);
}

void JsonStream::enter_object() {
  enter('{', "expected an object");
}

void JsonStream::enter_array() {
  enter('[', "expected an array");
}

bool JsonStream::next_item(char close) {
  skip_space();
  const bool first = first_.back();
  first_.back() = false;
  const char c = take();
  if (c == close) {
    first_.pop_back();
    return false;
  }
  if (first) {
    --at_;
  } else if (c != ',') {
    --at_;
    fail_here("expected a comma or the end of the list");
  }
  return true;
}

bool JsonStream::next_element() {
  return next_item(']');
}

bool JsonStream::next_member(std::string& key) {
  if (!next_item('}')) return false;
  key = string();
  skip_space();
  if (take() != ':') fail_here("expected a colon");
  return true;
}

char32_t JsonStream::hexadecimal() {
  char32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hexadecimal_digit(take());
    if (digit < 0) fail_here("expected four hexadecimal digits");
    value = 16 * value + static_cast<char32_t>(digit);
  }
  return value;
}

void JsonStream::append_escape() {
  const char c = take();
  switch (c) {
    case '"':
    case '\\':
    case '/': buffer_ += c; return;
    case 'b': buffer_ += '\b'; return;
    case 'f': buffer_ += '\f'; return;
    case 'n': buffer_ += '\n'; return;
    case 'r': buffer_ += '\r'; return;
    case 't': buffer_ += '\t'; return;
    case 'u': break;
    default: fail_here("unknown escape");
  }
  char32_t code = hexadecimal();
  if (code >= 0xD800 && code < 0xDC00) {
    if (take() != '\\' || take() != 'u') fail_here("half a surrogate pair");
    const char32_t low = hexadecimal();
    if (low < 0xDC00 || low > 0xDFFF) fail_here("half a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    fail_here("half a surrogate pair");
  }
  append_utf8(buffer_, code);
}

std::string_view JsonStream::string() {
  if (peek() != '"') fail_here("expected a string");
  ++at_;
  buffer_.clear();
  bool escaped = false;
  bool ascii = true;
  std::size_t start = at_;
  for (;;) {
    // Most characters need nothing: ASCII from the space on. char is unsigned on Arm.
    const auto is_plain = [](char c) { return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\'; };
    while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    const char c = take();
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < 0x20) fail_here("control character in a string");
    ascii = ascii && static_cast<signed char>(c) >= 0;
    if (c != '\\') continue;
    buffer_.append(text_, start, at_ - 1 - start);
    append_escape();
    escaped = true;
    start = at_;
  }
  std::string_view result = text_.substr(start, at_ - 1 - start);
  if (escaped) result = buffer_.append(result);
  if (!ascii && !is_utf8(result)) fail_here("a string is not valid UTF-8");
  return result;
}

std::string_view JsonStream::number_text() {
  if (peek() != '0') fail_here("expected a number");
  const std::size_t start = at_;
  const auto digits = [this] {
    const std::size_t before = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == before) fail_here("expected a digit");
  };
  const auto is_next = [this](char a, char b) {
    return at_ < text_.size() && (text_[at_] == a || text_[at_] == b);
  };
  if (is_next('-', '-')) ++at_;
  const bool zero = is_next('0', '0');
  const std::size_t whole = at_;
  digits();
  if (zero && at_ > whole + 1) fail_here("a number starts with 0");
  if (is_next('.', '.')) {
    ++at_;
    digits();
  }
  if (is_next('e', 'E')) {
    ++at_;
    if (is_next('+', '-')) ++at_;
    digits();
  }
  return text_.substr(start, at_ - start);
}

double JsonStream::to_double(std::string_view number) const {
  double value = 0.0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc{}) return value;
  if (!is_too_small(number)) fail_here("a number does not fit a double");
  return number.starts_with('-') ? -0.0 : 0.0;
}

std::uint32_t JsonStream::index() {
  const std::string_view text = number_text();
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) fail_here("expected an id");
  return value;
}

void JsonStream::expect_word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) fail_here("expected a value");
  at_ += word.size();
}

bool JsonStream::boolean() {
  const char kind = peek();
  if (kind != 't' && kind != 'f') fail_here("expected true or false");
  expect_word(kind == 't' ? "true" : "false");
  return kind == 't';
}

void JsonStream::null() {
  if (peek() != 'n') fail_here("expected null");
  expect_word("null");
}

std::string_view JsonStream::skip() {
  const char kind = peek();
  const std::size_t start = at_;
  if (kind == '"') {
    string();
  } else if (kind == '0') {
    number_text();
  } else if (kind == '{') {
    std::string key;
    for (enter_object(); next_member(key);) skip();
  } else if (kind == '[') {
    for (enter_array(); next_element();) skip();
  } else {
    expect_word(kind == 't' ? "true" : kind == 'f' ? "false" : "null");
  }
  return text_.substr(start, at_ - start);
}

void JsonStream::finish() {
  skip_space();
  if (at_ != text_.size()) fail_here("text after the end");
}

}  // namespace vit::internal
