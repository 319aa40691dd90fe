// How much memory a function touches at its peak, as Linux counts it.
#pragma once

#include <cstddef>

#include "apps/vit/ground/peak_memory.h"

namespace vit::test {

/// Peak of the resident memory while `function` runs, less what was resident before; 0 where the system does
/// not say.
template <typename Function>
std::size_t peak_growth_bytes(Function&& function) {
  app::reset_peak_memory();
  const auto before = app::peak_memory_bytes();
  function();
  const auto after = app::peak_memory_bytes();
  return before && after && *after > *before ? *after - *before : 0;
}

}  // namespace vit::test
