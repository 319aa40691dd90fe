// The one exception type of the library, and the checks that throw it.
// A message reads "[where] what was expected and found; likely cause".
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "vit/base/export.h"

namespace vit {

/// What kind of failure an Error is, for callers that react to it; the text is for people.
enum class ErrorKind {
  argument,  // the call is wrong: a value out of range, a shape that does not fit, an unknown name
  io,  // the system refused: a file is missing, unreadable, or cannot be written; no more memory or threads
  format,       // a file is damaged, truncated, or not what its name says
  unsupported,  // a well-formed file asks for something that is not implemented
  mismatch,     // files, or a file and an option, contradict each other: a tensor of another shape, no such
                // tensor
};

/// "argument", "io", "format", "unsupported" or "mismatch".
constexpr const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument: return "argument";
    case ErrorKind::io: return "io";
    case ErrorKind::format: return "format";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::mismatch: return "mismatch";
  }
  return "unknown";
}

/// The operation that fails, and the kind of failure unless the check says otherwise:
///   constexpr Where kWhere{"decode_tiff", ErrorKind::format};
///   fail(kWhere, name, ": truncated");
///   fail(kWhere.with(ErrorKind::unsupported), name, ": 64-bit samples are not supported");
/// Plain text stands for a wrong argument.
class Where {
 public:
  constexpr Where(std::string_view operation, ErrorKind kind = ErrorKind::argument)
      : operation_(operation), kind_(kind) {}
  constexpr Where(const char* operation) : Where(std::string_view(operation)) {}
  Where(const std::string& operation) : Where(std::string_view(operation)) {}

  constexpr std::string_view operation() const noexcept { return operation_; }
  constexpr ErrorKind kind() const noexcept { return kind_; }
  /// The same operation with another kind of failure.
  constexpr Where with(ErrorKind kind) const noexcept { return {operation_, kind}; }

 private:
  std::string_view operation_;
  ErrorKind kind_;
};

/// Thrown by every function of the library that cannot do what was asked. `what()` is one line without a
/// trailing newline: the operation in brackets, then what was expected and found, with file and tensor named.
class VIT_API Error : public std::runtime_error {
 public:
  Error(const Where& where, std::string_view message)
      : std::runtime_error("[" + std::string(where.operation()) + "] " + std::string(message)),
        where_(where.operation()),
        kind_(where.kind()) {}

  ErrorKind kind() const noexcept { return kind_; }

  /// The operation that failed, for example "load_safetensors".
  const std::string& where() const noexcept { return where_; }
  /// what() without the operation.
  std::string_view message() const noexcept {
    return std::string_view(what()).substr(where_.size() + std::string_view("[] ").size());
  }

 private:
  std::string where_;
  ErrorKind kind_;
};

/// Joins streamable parts to one string: text("rows ", 3, " of ", 7).
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws Error(where, text(parts...)).
template <typename... Parts>
[[noreturn]] void fail(const Where& where, const Parts&... parts) {
  throw Error(where, text(parts...));
}

}  // namespace vit

/// Contract check that stays on in every build: VIT_CHECK(rows > 0, "patchify", "rows must be positive, got
/// ", rows).
#define VIT_CHECK(condition, where, ...)               \
  do {                                                 \
    if (!(condition)) ::vit::fail(where, __VA_ARGS__); \
  } while (false)

/// Check on hot paths, compiled only in debug builds.
#ifdef NDEBUG
#define VIT_DCHECK(condition, where, ...) static_cast<void>(0)
#else
#define VIT_DCHECK(condition, where, ...) VIT_CHECK(condition, where, __VA_ARGS__)
#endif
