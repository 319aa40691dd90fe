// An exponential function whose loops become vectors without a library for it.
#pragma once

#include <bit>
#include <cstdint>

namespace vit::internal {

/// exp(x) of -170 <= x <= 0, within 4e-7 of itself: the square of exp(x / 2), which is a normal number. Of
/// additions, products and a shift, which become vectors.
inline float exp_of_negative(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 2^23: in a sum with it the last bits are an integer
  const float half = 0.5f * x;
  const float shifted = half * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (half - n * 0.693359375f) + n * 2.12194440e-4f;  // n log 2 in two parts
  float sum = 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const auto root =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum) + (std::bit_cast<std::uint32_t>(shifted) << 23));
  return root * root;
}

}  // namespace vit::internal
