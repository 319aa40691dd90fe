// Squares along the longer edge of an image that is computed as several: as many as cover it, evenly spaced.
// Source: transformers, models/eomt, image_processing_eomt.py.
#pragma once

#include <cstddef>

#include "vit/base/checked.h"

namespace vit::internal {

inline std::size_t window_count(std::size_t length, std::size_t edge) {
  return ceil_div(length, edge);
}

/// The first pixel of window `index` of `count`.
inline std::size_t window_start(std::size_t index, std::size_t count, std::size_t edge, std::size_t length) {
  if (count == 1) return 0;
  const auto rest = static_cast<double>(count * edge - length);
  const double step = static_cast<double>(edge) - rest / static_cast<double>(count - 1);
  return static_cast<std::size_t>(static_cast<double>(index) * step);
}

}  // namespace vit::internal
