// How the library throws Error: checks, and messages concatenated from parts.
#pragma once

#include <sstream>
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

/// Throws std::bad_alloc if memory is short: a plain stream silently drops text it cannot store.
struct TextStream : std::ostringstream {
  TextStream() { exceptions(std::ios::badbit); }
};

/// Concatenates streamable parts into one string: text("rows ", 3, " of ", 7).
template <typename... Parts>
std::string text(const Parts&... parts) {
  TextStream out;
  (out << ... << parts);
  return out.str();
}

/// Throws Error with text(parts...).
template <typename... Parts>
[[noreturn]] void fail(const Where& where, const Parts&... parts) {
  throw Error(where.operation(), text(parts...), where.kind());
}

}  // namespace vit::internal

namespace vit {
using internal::fail;
using internal::text;
using internal::Where;
}  // namespace vit

/// Contract check that stays on in every build: VIT_CHECK(rows > 0, "patchify", "rows must be positive, got
/// ", rows).
#define VIT_CHECK(condition, where, ...)                         \
  do {                                                           \
    if (!(condition)) ::vit::internal::fail(where, __VA_ARGS__); \
  } while (false)
