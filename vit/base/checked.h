// Integer arithmetic on sizes: overflow is an Error, never a wrap-around.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "vit/base/check.h"

namespace vit::internal {

/// Whether a * b exceeds 64 bits.
constexpr bool product_overflows(std::size_t a, std::size_t b) {
  return a != 0 && b > std::numeric_limits<std::size_t>::max() / a;
}

/// a * b; throws Error if the product exceeds 64 bits.
inline std::size_t checked_mul(std::size_t a, std::size_t b, const Where& where) {
  VIT_CHECK(!product_overflows(a, b), where, "size overflow: ", a, " * ", b);
  return a * b;
}

/// a + b; throws Error if the sum exceeds 64 bits.
inline std::size_t checked_add(std::size_t a, std::size_t b, const Where& where) {
  VIT_CHECK(b <= std::numeric_limits<std::size_t>::max() - a, where, "size overflow: ", a, " + ", b);
  return a + b;
}

/// Quotient rounded up; b > 0.
constexpr std::size_t ceil_div(std::size_t a, std::size_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Smallest multiple of `multiple` that is >= a; multiple > 0.
constexpr std::size_t round_up(std::size_t a, std::size_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

}  // namespace vit::internal

namespace vit {
using internal::ceil_div;
using internal::checked_add;
using internal::checked_mul;
using internal::product_overflows;
using internal::round_up;
}  // namespace vit
