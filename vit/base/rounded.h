// Functions of a float, computed in double and rounded once: the float functions of the C library differ
// between processors, as some of them use fused multiply-adds.
#pragma once

#include <cmath>
#include <numbers>

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

}  // namespace vit::internal
