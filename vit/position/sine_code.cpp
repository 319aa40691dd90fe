#include "vit/position/sine_code.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vit::internal {
namespace {

constexpr double kSinePeriod = 10000.0;

/// Channel i of n: the sine (even i) or cosine of the angle times 10000^(-2 floor(i / 2) / n).
void code_of_angle(double angle, std::span<float> code) {
  const auto count = static_cast<double>(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    const double x = angle * std::pow(kSinePeriod, -2.0 * static_cast<double>(i / 2) / count);
    code[i] = static_cast<float>(i % 2 == 0 ? std::sin(x) : std::cos(x));
  }
}

}  // namespace

Tensor<float> sine_code_of_map(std::size_t rows, std::size_t columns, std::size_t dim) {
  constexpr double kEps = 1e-6;
  const std::size_t half = dim / 2;
  Tensor<float> out(Shape{rows * columns, dim});
  const auto angle = [](std::size_t index, std::size_t count) {
    return 2.0 * std::numbers::pi * static_cast<double>(index + 1) / (static_cast<double>(count) + kEps);
  };
  for (std::size_t y = 0; y < rows; ++y) {
    float* const first = out.view().row(y * columns);
    code_of_angle(angle(y, rows), {first, half});
    for (std::size_t x = 1; x < columns; ++x) std::copy_n(first, half, first + x * dim);
  }
  for (std::size_t x = 0; x < columns; ++x) {
    float* const first = out.view().row(x) + half;
    code_of_angle(angle(x, columns), {first, half});
    for (std::size_t y = 1; y < rows; ++y) std::copy_n(first, half, first + y * columns * dim);
  }
  return out;
}

void sine_code_of_value(double value, std::span<float> code) {
  code_of_angle(2.0 * std::numbers::pi * value, code);
}

}  // namespace vit::internal
