// How much memory a function touches at its peak, as Linux counts it.
#pragma once

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

namespace vit::test {

/// One line of /proc/self/status in bytes, for example "VmHWM:".
inline std::optional<std::size_t> status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t kilobytes = 0;
  while (status >> word) {
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

/// Peak of the resident memory while `function` runs, less what was resident before; 0 where the system does
/// not tell.
template <typename Function>
std::size_t peak_growth_bytes(Function&& function) {
  std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak starts anew
  const auto before = status_bytes("VmHWM:");
  function();
  const auto after = status_bytes("VmHWM:");
  return before && after && *after > *before ? *after - *before : 0;
}

}  // namespace vit::test
