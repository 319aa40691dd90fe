// The one exception type of the library. A message reads "[where] what was expected and found; likely cause".
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

// VIT_API marks symbols exported from a shared library; everything else is hidden, members of an exported
// class if VIT_HIDDEN marks them. For Windows the library is static, and both are empty.
#ifndef VIT_API
#if defined(__GNUC__) && !defined(_WIN32)
#define VIT_API __attribute__((visibility("default")))
#else
#define VIT_API
#endif
#endif
#if defined(__GNUC__) && !defined(_WIN32)
#define VIT_HIDDEN __attribute__((visibility("hidden")))
#else
#define VIT_HIDDEN
#endif

// Marks what points into the object that it is called on: clang warns if that is a temporary that ends before
// the result.
#if defined(__clang__)
#define VIT_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define VIT_LIFETIME_BOUND
#endif

namespace vit {

/// The kind of failure of an Error, for programs; the message is for humans.
enum class ErrorKind {
  argument,  // the call is wrong: a value out of range, a shape mismatch, an unknown name
  io,  // the system refused: a file is missing, unreadable, or cannot be written; no more memory or threads
  format,       // a file is damaged, truncated, or of another format than its name
  unsupported,  // a well-formed file needs something that is not implemented
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

/// Thrown by every function of the library that fails, but for memory of a size that was asked for and that
/// there is not, where std::bad_alloc or std::length_error is thrown. `what()` is one line without a trailing
/// newline: the operation in brackets, then what was expected and found, with file and tensor named.
class VIT_API Error : public std::runtime_error {
 public:
  /// `where` is the operation, without brackets.
  Error(std::string_view where, std::string_view message, ErrorKind kind = ErrorKind::argument)
      : std::runtime_error("[" + std::string(where) + "] " + std::string(message)),
        where_(where),
        kind_(kind) {}

  /// The kind of failure; ErrorKind::argument unless specified otherwise.
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
