// The one exception type of the library. A message reads "[where] what was expected and found; likely cause".
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

// Marks what a shared library hands to its users; everything else stays hidden inside it. In a static library
// the mark means nothing.
#ifndef VIT_API
#if defined(__GNUC__)
#define VIT_API __attribute__((visibility("default")))
#else
#define VIT_API
#endif
#endif

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

/// Thrown by every function of the library that cannot do what was asked. `what()` is one line without a
/// trailing newline: the operation in brackets, then what was expected and found, with file and tensor named.
class VIT_API Error : public std::runtime_error {
 public:
  /// `where` is the operation, without brackets.
  Error(std::string_view where, std::string_view message, ErrorKind kind = ErrorKind::argument)
      : std::runtime_error("[" + std::string(where) + "] " + std::string(message)),
        where_(where),
        kind_(kind) {}

  /// What kind of failure it is; ErrorKind::argument unless it was thrown as another.
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

}  // namespace vit
