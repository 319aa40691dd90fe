#include "apps/vit/ground/peak_memory.h"

#include <fstream>
#include <string>

namespace vit::app {

std::optional<std::size_t> peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::size_t kibibytes = 0;
    if (key == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets the peak resident set size
}

}  // namespace vit::app
