// Seeded numbers for property tests, the same on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "vit/base/tensor.h"

namespace vit::test {

/// Uniform numbers in [-1, 1).
class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : engine_(seed) {}

  double operator()() { return static_cast<double>(engine_() >> 11) * 0x1p-52 - 1.0; }
  double operator()(double largest) { return largest * (*this)(); }
  template <typename T>
  Tensor<T> tensor(Shape shape) {
    Tensor<T> values(shape);
    for (T& value : values.flat()) value = static_cast<T>((*this)());
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace vit::test
