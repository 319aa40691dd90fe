// Results are neither NaN nor infinite unless pixels or weights are damaged.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/check.h"

namespace vit::internal {

inline bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

/// "" for finite numbers, else what a message says of them; `subject` is "the logits are".
inline std::string defect_of(std::span<const float> numbers, std::string_view subject) {
  return are_finite(numbers) ? "" : std::string(subject) + " not finite; damaged pixels or weights?";
}

/// Throws Error with defect_of() for others than finite numbers.
inline void check_finite(std::span<const float> numbers, const Where& where, std::string_view subject) {
  if (const std::string defect = defect_of(numbers, subject); !defect.empty()) fail(where, defect);
}

}  // namespace vit::internal

namespace vit {
using internal::are_finite;
using internal::check_finite;
using internal::defect_of;
}  // namespace vit
