// What the program can tell about its own process.
#pragma once

#include <cstddef>
#include <optional>

namespace vit::app {

/// Most bytes of memory this process has held so far (VmHWM), or nothing if the system does not tell.
std::optional<std::size_t> peak_memory_bytes();
/// Starts the count anew at what is held now, if the system allows that.
void reset_peak_memory();

}  // namespace vit::app
