// Statuses, messages and options of the C interface.
#include "vit/c.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/version.h"

namespace vit::internal {
namespace {

constexpr std::size_t kMaxStructSize = 4096;  // a larger value is not a size: the member was not set
constexpr const char* kNoMemory = "[C interface] not enough memory";

/// The message of the last call that failed in this thread. Nothing is to be destroyed at the end of a
/// thread: MinGW-w64 would do so after its storage is gone.
struct LastError {
  std::array<char, 8192> text;  // of zeros at first
};
static_assert(std::is_trivially_destructible_v<LastError>);
LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

}  // namespace

vit_status status_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::argument: return VIT_ERROR_ARGUMENT;
    case ErrorKind::io: return VIT_ERROR_IO;
    case ErrorKind::format: return VIT_ERROR_FORMAT;
    case ErrorKind::unsupported: return VIT_ERROR_UNSUPPORTED;
    case ErrorKind::mismatch: return VIT_ERROR_MISMATCH;
  }
  return VIT_ERROR_INTERNAL;
}

vit_status remember(vit_status status, const char* message) noexcept {
  auto& text = last_error().text;
  std::size_t size = std::min(std::strlen(message), text.size() - 1);
  while (size > 0 && message[size] != '\0' && (static_cast<unsigned char>(message[size]) & 0xC0) == 0x80)
    --size;  // of a character
  std::memcpy(text.data(), message, size);
  text[size] = '\0';
  return status;
}

vit_status remember_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return remember(status_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return remember(VIT_ERROR_IO, kNoMemory);
  } catch (const std::length_error&) {
    return remember(VIT_ERROR_ARGUMENT, "[C interface] a size that no memory holds");
  } catch (const std::system_error& error) {
    return remember(VIT_ERROR_IO, error.what());
  } catch (const std::exception& error) {
    return remember(VIT_ERROR_INTERNAL, error.what());
  } catch (...) {
    return remember(VIT_ERROR_INTERNAL, "[C interface] an exception of unknown type");
  }
}

void read_struct(const void* given, void* out, std::size_t known, const char* name) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  VIT_CHECK(size >= sizeof size && size <= kMaxStructSize, kCall, "struct_size of ", name, " is ", size,
            ", expected ", known, ", its sizeof");
  std::memcpy(out, given, std::min(size, known));
  const auto* const bytes = static_cast<const unsigned char*>(given);
  const bool is_understood =
      std::all_of(bytes + std::min(size, known), bytes + size, [](unsigned char byte) { return byte == 0; });
  VIT_CHECK(is_understood, kCall.with(ErrorKind::unsupported), name,
            " uses a feature newer than this release of the library, ", version());
}

std::vector<std::string> strings_of(const char* const* texts, std::size_t count, const char* name) {
  std::vector<std::string> out;
  for (const char* const text : span_of(texts, count, name)) out.emplace_back(&object_at(text, name));
  return out;
}

}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

const char* vit_status_name(vit_status status) {
  constexpr const char* kNames[] = {"ok", "argument", "io", "format", "unsupported", "mismatch", "internal"};
  return status >= 0 && static_cast<std::size_t>(status) < std::size(kNames) ? kNames[status] : "unknown";
}

const char* vit_last_error(void) {
  return last_error().text.data();
}

const char* vit_version(void) {
  return version();
}

int32_t vit_c_revision(void) {
  return VIT_C_REVISION;
}
