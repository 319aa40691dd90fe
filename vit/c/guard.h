// The layer between the C interface and the library: exceptions become statuses, C structs and numbers
// become C++ ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"
#include "vit/c.h"

namespace vit::internal {

inline constexpr Where kCall{"C interface", ErrorKind::argument};

vit_status status_of(ErrorKind kind) noexcept;
/// Keeps the text of a failed call for vit_last_error() and returns its status.
vit_status remember(vit_status status, const char* message) noexcept;
/// remember() for the exception that is being handled.
vit_status remember_exception() noexcept;

/// Runs the body of a call, which returns nothing or its own status. No exception leaves it.
template <typename Body>
vit_status guarded(const Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return VIT_OK;
    } else {
      return body();
    }
  } catch (...) {
    return remember_exception();
  }
}

/// The object of a pointer. Throws Error if it is null.
template <typename T>
T& object_at(T* pointer, const char* name) {
  VIT_CHECK(pointer != nullptr, kCall, name, " is NULL");
  return *pointer;
}

/// `count` values, or an empty span.
template <typename T>
std::span<T> span_of(T* values, std::size_t count, const char* name) {
  VIT_CHECK(values != nullptr || count == 0, kCall, name, " is NULL, for ", count, " values");
  constexpr std::size_t kMost = (std::size_t{1} << 47) / sizeof(T);  // more than a process can address
  VIT_CHECK(count <= kMost, kCall, name, ": a count of ", count, " values, which no memory holds");
  return {values, count};
}

/// Text of the caller; "" for NULL.
inline std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}
std::vector<std::string> strings_of(const char* const* texts, std::size_t count, const char* name);

/// Options in the struct of this release, from a struct of the caller's size. Throws Error if the
/// caller uses members that this release does not have.
void read_struct(const void* given, void* out, std::size_t known, const char* name);
template <typename Options>
Options options_of(const Options* given, const char* name) {
  Options out{};
  if (given != nullptr) read_struct(given, &out, sizeof out, name);
  return out;
}

/// The enumerator of the same number. Throws Error for a number above `last`.
template <typename Enum>
Enum enum_of(std::int64_t value, Enum last, const char* name) {
  check_choice(kCall, name, value, static_cast<std::int64_t>(last));
  return static_cast<Enum>(value);
}

/// An array of the library, which the caller may read.
inline vit_array array_of(const void* data, std::int32_t dtype, const Shape& shape) {
  vit_array out{};
  out.data = data;
  out.dtype = dtype;
  out.ndim = static_cast<std::uint32_t>(shape.rank());
  for (std::size_t i = 0; i < shape.rank(); ++i) out.shape[i] = shape[i];
  return out;
}
template <typename T>
vit_array array_of(TensorView<const T> values) {
  return array_of(values.data(), sizeof(T) == sizeof(double) ? VIT_FLOAT64 : VIT_FLOAT32, values.shape());
}

}  // namespace vit::internal
