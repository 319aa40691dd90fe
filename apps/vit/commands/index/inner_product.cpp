#include "apps/vit/commands/index/inner_product.h"

#include <array>

namespace vit::app {

// Eight vectors of the smallest instruction set: one thread nearly keeps up with memory. FAISS's own, built
// for every processor of an architecture, takes four times as long.
constexpr std::size_t kSums = 32;

float inner_product(const float* a, const float* b, std::size_t count) {
  std::array<float, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (std::size_t k = 0; i < count; ++i, ++k) sums[k] += a[i] * b[i];
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

}  // namespace vit::app
