// Reproducible random numbers for tests: the same on every platform, unlike the distributions of <random>.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
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
  /// Uniform in [low, high), 53 random bits.
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }
  /// Normal with mean 0 and variance 1 (Box and Muller).
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(0.0, 1.0)));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform(0.0, 1.0)));
  }
  template <std::floating_point T>
  void fill(std::span<T> numbers, T low, T high) {
    for (T& number : numbers) number = uniform(low, high);
  }
  template <std::floating_point T = float>
  Tensor<T> tensor(Shape shape, T low = -1, T high = 1) {
    Tensor<T> out(shape);
    fill(out.flat(), low, high);
    return out;
  }
  template <std::floating_point T = float>
  std::vector<T> numbers(std::size_t count, T low = -1, T high = 1) {
    std::vector<T> out(count);
    fill(std::span<T>(out), low, high);
    return out;
  }

 private:
  std::uint64_t state_;
};

}  // namespace vit::test
