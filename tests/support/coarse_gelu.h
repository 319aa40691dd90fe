// What GELU may be off by where its result is rounded to few bits next.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace vit::test {

/// Both bends of the curve in small steps, and numbers far from them.
inline std::vector<float> numbers_for_gelu() {
  std::vector<float> numbers;
  for (int i = -6000; i <= 6000; ++i) numbers.push_back(static_cast<float>(i) / 1000.0f);
  for (const float far : {50.0f, 1e4f, 1e30f}) numbers.insert(numbers.end(), {far, -far});
  numbers.push_back(std::numeric_limits<float>::infinity());
  numbers.push_back(std::numeric_limits<float>::quiet_NaN());
  return numbers;
}

inline bool is_coarse_gelu(float y, float x) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x > 10.0f) return y == x;
  const double number = x;
  const double exact = x < -10.0f ? 0.0 : 0.5 * number * std::erfc(-number / std::sqrt(2.0));
  return std::fabs(y - exact) <= 9e-5 + 1.2e-7 * std::fabs(number);
}

}  // namespace vit::test
