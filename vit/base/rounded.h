// Functions of a float, computed in double and rounded once: the float functions of the C library differ
// between processors, as some of them use fused multiply-adds.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vit/base/choices.h"

namespace vit::internal {

inline float rounded_exp(float x) {
  return static_cast<float>(std::exp(double{x}));
}
inline float rounded_expm1(float x) {
  return static_cast<float>(std::expm1(double{x}));
}
inline float rounded_log(float x) {
  return static_cast<float>(std::log(double{x}));
}
inline float rounded_log1p(float x) {
  return static_cast<float>(std::log1p(double{x}));
}
inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
inline float rounded_sigmoid(float x) {
  return static_cast<float>(sigmoid(double{x}));
}
/// GELU with the error function.
inline float rounded_gelu(float x) {
  return static_cast<float>(0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)));
}

/// Of the MLPs of a model, to be rounded by the caller.
inline double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2.0 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
      return x / (1.0 + std::exp(-2.0 * inner));  // 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z))
    }
    case Activation::quick_gelu: return x / (1.0 + std::exp(-1.702 * x));
    case Activation::silu: return x / (1.0 + std::exp(-x));
    case Activation::relu: return std::max(x, 0.0);
  }
  return x;
}

}  // namespace vit::internal
