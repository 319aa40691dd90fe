#include "vit/kernels/int8.h"

#include <algorithm>
#include <cmath>

namespace vit::internal::kernels {

bool quantize_weights(const float* row, std::size_t count, int pair_largest, std::int8_t* q,
                      float& scale) noexcept {
  float largest = 0.0f, largest_half_sum = 0.0f;
  bool is_finite = true;
  for (std::size_t k = 0; k < count; ++k) {
    largest = std::max(largest, std::fabs(row[k]));
    is_finite = is_finite && std::isfinite(row[k]);
    if (k % 2 == 1) largest_half_sum = std::max(largest_half_sum, std::fabs(row[k - 1] / 2 + row[k] / 2));
  }
  if (!is_finite) return false;
  // Both of a pair may be rounded away from 0, by a half.
  const float step =
      std::max(largest / 127.0f, largest_half_sum / (0.5f * static_cast<float>(pair_largest - 1)));
  const float factor = largest < 1e-30f ? 0.0f : 1.0f / step;
  for (std::size_t k = 0; k < count; ++k) q[k] = static_cast<std::int8_t>(std::nearbyint(row[k] * factor));
  scale = factor == 0.0f ? 0.0f : step;
  return true;
}

}  // namespace vit::internal::kernels
