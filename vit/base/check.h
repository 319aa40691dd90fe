// How the library throws Error: checks, and messages concatenated from parts.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "vit/base/error.h"

namespace vit::internal {

/// The operation that fails, and the kind of failure unless the check specifies another:
///   constexpr Where kWhere{"decode_tiff", ErrorKind::format};
///   fail(kWhere, name, ": truncated");
///   fail(kWhere.with(ErrorKind::unsupported), name, ": 64-bit samples are not supported");
/// Plain text means ErrorKind::argument.
class Where {
 public:
  constexpr Where(std::string_view operation, ErrorKind kind = ErrorKind::argument)
      : operation_(operation), kind_(kind) {}
  constexpr Where(const char* operation) : Where(std::string_view(operation)) {}
  Where(const std::string& operation) : Where(std::string_view(operation)) {}

  constexpr std::string_view operation() const noexcept { return operation_; }
  constexpr ErrorKind kind() const noexcept { return kind_; }
  /// This operation with another kind of failure.
  constexpr Where with(ErrorKind kind) const noexcept { return {operation_, kind}; }

 private:
  std::string_view operation_;
  ErrorKind kind_;
};

/// A part of a message: text, or a number in the form in which a stream prints it. It refers to its text,
/// which must live as long. One type for all parts keeps a message from being a template of its own.
class MessagePart {
 public:
  MessagePart(const char* text) : text_(text), kind_(Kind::text) {}
  MessagePart(std::string_view text) : text_(text), kind_(Kind::text) {}
  MessagePart(const std::string& text) : text_(text), kind_(Kind::text) {}
  MessagePart(char letter) : letter_(letter), kind_(Kind::letter) {}
  MessagePart(double number) : real_(number), kind_(Kind::real) {}
  template <std::signed_integral Number>
  MessagePart(Number number) : integer_(number), kind_(Kind::integer) {}
  template <std::unsigned_integral Number>
  MessagePart(Number number) : count_(number), kind_(Kind::count) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind : unsigned char { text, letter, integer, count, real };
  union {
    std::string_view text_;
    char letter_;
    long long integer_;
    unsigned long long count_;
    double real_;
  };
  Kind kind_;
};

/// The parts one after the other.
std::string concatenate(std::initializer_list<MessagePart> parts);

/// Throws Error with their text.
[[noreturn]] void fail_with(const Where& where, std::initializer_list<MessagePart> parts);

/// Concatenates text and numbers into one string: text("rows ", 3, " of ", 7).
template <typename... Parts>
std::string text(const Parts&... parts) {
  return concatenate({parts...});
}

/// Throws Error with text(parts...).
template <typename... Parts>
[[noreturn]] void fail(const Where& where, const Parts&... parts) {
  fail_with(where, {parts...});
}

/// Throws Error for a number that is not 0 to `last`.
void check_number(const Where& where, std::string_view name, long long number, long long last);

/// Throws Error for a number that is none of the enumerators 0 to `last`: a cast, or memory that was never
/// set.
template <typename Choice>
void check_choice(const Where& where, std::string_view name, Choice value, Choice last) {
  check_number(where, name, static_cast<long long>(value), static_cast<long long>(last));
}

}  // namespace vit::internal

namespace vit {
using internal::check_choice;
using internal::fail;
using internal::text;
using internal::Where;
}  // namespace vit

/// Contract check that stays on in every build: VIT_CHECK(rows > 0, "patchify", "rows must be positive, got
/// ", rows).
#define VIT_CHECK(condition, where, ...)                                \
  do {                                                                  \
    if (!(condition)) ::vit::internal::fail_with(where, {__VA_ARGS__}); \
  } while (false)
