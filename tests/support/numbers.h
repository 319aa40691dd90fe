// Comparisons of rows of numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <ranges>

namespace vit::test {

/// Largest |a[i] - b[i]| in double precision: infinite if the ranges have different lengths, not a number if
/// one of the differences is.
template <std::ranges::random_access_range A, std::ranges::random_access_range B>
double largest_difference(const A& a, const B& b) {
  if (std::ranges::size(a) != std::ranges::size(b)) return std::numeric_limits<double>::infinity();
  double largest = 0.0;
  for (std::size_t i = 0; i < std::ranges::size(a); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // keeps not-a-number
  }
  return largest;
}

}  // namespace vit::test
