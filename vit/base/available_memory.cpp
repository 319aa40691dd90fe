// On Linux: /proc/meminfo, and the files of version 2 of control groups. Elsewhere what the system reports,
// if it does.
#include "vit/base/available_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

#include "vit/base/system.h"

namespace vit::internal {
namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

#ifdef __linux__

/// The start of a small system file, empty if there is none.
class SystemText {
 public:
  explicit SystemText(const char* path) noexcept {
    const int file = system::open_file(path);
    if (file < 0) return;
    const std::ptrdiff_t got = system::read_at(file, 0, std::as_writable_bytes(std::span(bytes_)));
    size_ = got < 0 ? 0 : static_cast<std::size_t>(got);
    system::close_file(file);
  }

  /// The number after `name` at the start of a line, or at the start of the text if `name` is empty.
  std::size_t number(std::string_view name, std::size_t otherwise) const noexcept {
    std::string_view text(bytes_.data(), size_);
    while (!text.empty() && !text.starts_with(name))
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(std::min(name.size(), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? value : otherwise;
  }

 private:
  std::array<char, 8192> bytes_;
  std::size_t size_ = 0;
};

std::size_t available_to_machine() noexcept {
  const SystemText text("/proc/meminfo");  // in units of 1024 bytes
  const std::size_t available = text.number("MemAvailable:", kUnknown);
  if (available >= kUnknown / 2048) return kUnknown;
  return 1024 * (available + text.number("SwapFree:", 0));
}

std::size_t available_to_group() noexcept {
  const std::size_t most = SystemText("/sys/fs/cgroup/memory.max").number("", kUnknown);  // "max": no limit
  const std::size_t taken = SystemText("/sys/fs/cgroup/memory.current").number("", kUnknown);
  if (most == kUnknown || taken == kUnknown) return kUnknown;
  const SystemText statistics("/sys/fs/cgroup/memory.stat");
  const std::size_t caches = statistics.number("inactive_file ", 0) + statistics.number("active_file ", 0);
  return most - std::min(most, taken - std::min(taken, caches));
}

#endif

}  // namespace

std::size_t available_memory() noexcept {
#ifdef __linux__
  return std::min(available_to_machine(), available_to_group());
#else
  return system::available_memory().value_or(kUnknown);
#endif
}

}  // namespace vit::internal
