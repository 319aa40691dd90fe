#include "vit/outputs.h"

#include <cmath>

#include "vit/base/check.h"

namespace vit {
double cosine_similarity(std::span<const float> a, std::span<const float> b) {
  constexpr Where kCosine{"cosine_similarity", ErrorKind::argument};
  VIT_CHECK(a.size() == b.size(), kCosine, "vectors of ", a.size(), " and ", b.size(), " numbers");
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  const double lengths = std::sqrt(square_a) * std::sqrt(square_b);
  return lengths > 0 ? product / lengths : 0.0;
}

void normalize_vector(std::span<float> vector) {
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  if (square == 0) return;
  const double length = std::sqrt(square);
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) / length);
}

}  // namespace vit
