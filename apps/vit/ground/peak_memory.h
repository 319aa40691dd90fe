// The peak memory of the process, as Linux counts it.
#pragma once

#include <cstddef>
#include <optional>

namespace vit::app {

/// Peak memory of this process in bytes (VmHWM), or nothing if the system does not report it.
std::optional<std::size_t> peak_memory_bytes();
/// Resets the peak to the current memory, if the system allows it.
void reset_peak_memory();

}  // namespace vit::app
