// Reproducible random numbers for tests: the same on every platform, unlike the distributions of <random>.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::test {

/// SplitMix64.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high), 24 random bits.
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
  }
  void fill(std::span<float> numbers, float low, float high) {
    for (float& number : numbers) number = uniform(low, high);
  }
  Tensor<float> tensor(Shape shape, float low = -1.0f, float high = 1.0f) {
    Tensor<float> out(shape);
    fill(out.flat(), low, high);
    return out;
  }
  std::vector<float> numbers(std::size_t count, float low = -1.0f, float high = 1.0f) {
    std::vector<float> out(count);
    fill(out, low, high);
    return out;
  }

 private:
  std::uint64_t state_;
};

}  // namespace vit::test
