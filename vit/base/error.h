// The one exception type of the library, and the checks that throw it.
// A message reads "[where] what was expected and found; likely cause".
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vit {

/// Thrown by every function of the library that cannot do what was asked. `what()` is one line without a
/// trailing newline: the operation in brackets, then what was expected and found, with file and tensor named.
class Error : public std::runtime_error {
 public:
  Error(std::string_view where, std::string_view message)
      : std::runtime_error("[" + std::string(where) + "] " + std::string(message)), where_(where) {}

  /// The operation that failed, for example "load_safetensors".
  const std::string& where() const noexcept { return where_; }
  /// what() without the operation.
  std::string_view message() const noexcept {
    return std::string_view(what()).substr(where_.size() + std::string_view("[] ").size());
  }

 private:
  std::string where_;
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
[[noreturn]] void fail(std::string_view where, const Parts&... parts) {
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
