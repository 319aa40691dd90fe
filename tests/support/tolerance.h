// Error bounds derived from the arithmetic, not from what happens to pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace vit::test {

/// Unit roundoff of float32: a single operation errs by at most this, relatively.
constexpr double kRoundoff = 0x1p-24;

/// Bound on |computed - exact| of a float32 dot product whose terms have the absolute sum `sum_abs`. Each
/// term passes through at most `chain` roundings; one for the product where it is not fused, a few for what
/// follows.
inline double dot_bound(std::size_t chain, double sum_abs) {
  return kRoundoff * static_cast<double>(chain + 3) * sum_abs + std::numeric_limits<float>::min();
}

/// Longest chain of additions in a product over K: blocks of at most 768 terms, added up in order.
inline std::size_t gemm_chain(std::size_t in_features) {
  return std::min<std::size_t>(in_features, 768) + in_features / 768 + 1;
}

/// |computed - exact| in units of the last place of the exact value as a float32 (of the smallest normal
/// below that).
inline double ulps_between(float computed, double exact) {
  const double magnitude = std::max(std::fabs(exact), static_cast<double>(std::numeric_limits<float>::min()));
  const double ulp = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(static_cast<double>(computed) - exact) / ulp;
}

}  // namespace vit::test
