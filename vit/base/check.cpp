#include "vit/base/check.h"

#include <charconv>

namespace vit::internal {
namespace {

/// A number in its shortest form, or with six digits as a stream prints it.
template <typename Number, typename... Format>
void append_number(std::string& out, Number number, Format... format) {
  char digits[32];
  const auto result = std::to_chars(digits, digits + sizeof digits, number, format...);
  out.append(digits, result.ptr);
}

}  // namespace

void MessagePart::append_to(std::string& out) const {
  constexpr int kDigits = 6;
  switch (kind_) {
    case Kind::text: out.append(text_); break;
    case Kind::letter: out.push_back(letter_); break;
    case Kind::integer: append_number(out, integer_); break;
    case Kind::count: append_number(out, count_); break;
    case Kind::real: append_number(out, real_, std::chars_format::general, kDigits); break;
  }
}

std::string concatenate(std::initializer_list<MessagePart> parts) {
  std::string out;
  for (const MessagePart& part : parts) part.append_to(out);
  return out;
}

void fail_with(const Where& where, std::initializer_list<MessagePart> parts) {
  throw Error(where.operation(), concatenate(parts), where.kind());
}

void check_number(const Where& where, std::string_view name, long long number, long long last) {
  if (number < 0 || number > last) fail(where, name, " is ", number, ", an undefined number");
}

}  // namespace vit::internal
