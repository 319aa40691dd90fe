// Activations in double precision, and what they may be off by where results are rounded to few bits next.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "vit/base/choices.h"

namespace vit::test {

inline constexpr std::array kActivations{Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu,
                                         Activation::silu, Activation::relu};

/// All bends of the curves in small steps, and numbers far from them.
inline std::vector<float> numbers_for_activations() {
  std::vector<float> numbers;
  for (int i = -15000; i <= 15000; ++i) numbers.push_back(static_cast<float>(i) / 1000.0f);
  for (const float far : {50.0f, 1e4f, 1e30f}) numbers.insert(numbers.end(), {far, -far});
  numbers.push_back(std::numeric_limits<float>::infinity());
  numbers.push_back(std::numeric_limits<float>::quiet_NaN());
  return numbers;
}

inline double exact_activation(double x, Activation activation) {
  const auto times_sigmoid = [x](double y) { return x / (1.0 + std::exp(-y)); };
  switch (activation) {
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return times_sigmoid(std::sqrt(8.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
    case Activation::quick_gelu: return times_sigmoid(1.702 * x);
    case Activation::silu: return times_sigmoid(x);
    case Activation::relu: return std::fmax(x, 0.0);
    case Activation::none: break;
  }
  return x;
}

inline bool is_coarse_activation(float y, float x, Activation activation) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x > 20.0f) return y == x;
  const bool is_gelu = activation == Activation::gelu;  // whose bends end first
  const double exact = x < (is_gelu ? -10.0f : -30.0f) ? 0.0 : exact_activation(x, activation);
  const double coarse = is_gelu && x > 10.0f ? 0.0 : 9e-5;
  return std::fabs(y - exact) <= coarse + (is_gelu ? 1.2e-7 : 3e-7) * std::fabs(static_cast<double>(x));
}

}  // namespace vit::test
