// What the library refuses, as data: the kind of an Error, and the files, tensors and fields that it names.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// The Error that a call throws; empty if it throws none.
template <typename Function>
std::optional<Error> error_of(Function&& function) {
  try {
    std::forward<Function>(function)();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// The message of the Error that a call throws; empty if it throws none.
template <typename Function>
std::string message_of(Function&& function) {
  const auto error = error_of(std::forward<Function>(function));
  return error ? error->what() : "";
}

/// How an error differs from one of this kind whose message holds all of the names; empty if it does not.
inline std::string error_difference(const std::optional<Error>& error, ErrorKind kind,
                                    const std::vector<std::string>& names) {
  if (!error) return "no Error was thrown";
  std::string difference;
  if (error->kind() != kind)
    difference += text("kind ", to_string(error->kind()), " instead of ", to_string(kind), "; ");
  for (const std::string& name : names) {
    if (!contains(error->what(), name)) difference += "no \"" + name + "\"; ";
  }
  return difference.empty() ? difference : difference + "in: " + error->what();
}

}  // namespace vit::test

/// Checks that an expression throws an Error of a kind, and that its message names the given file, tensor,
/// field or number. The prose around these is free to change.
///   CHECK_ERROR(ErrorKind::format, ("model.safetensors", "blocks.0.norm1.weight"), open_safetensors(path));
#define CHECK_ERROR(kind, names, ...)                                                                       \
  CHECK(::vit::test::error_difference(::vit::test::error_of([&] { static_cast<void>(__VA_ARGS__); }), kind, \
                                      VIT_TEST_NAMES names) == "")
#define VIT_TEST_NAMES(...)  \
  std::vector<std::string> { \
    __VA_ARGS__              \
  }
