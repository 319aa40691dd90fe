// Interpolation along one axis whose length changes, without antialiasing: the two points between which a
// point lies, as torch.nn.functional.interpolate finds them, and the weights of four points around it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace vit::internal {

/// Which points of two axes of different length correspond.
enum class Alignment {
  corners,  // the centers of the first and of the last points
  edges,    // the outer edges; points beyond the centers take the border's value
};

/// A value at the point is first * (1 - t) + second * t.
struct BilinearSource {
  std::size_t first = 0;
  std::size_t second = 0;
  float t = 0.0f;  // 0 to below 1
};

/// The source of point `i` of `out` points in an axis of `in`. Scale, product and position are float32, as
/// in torch.
inline BilinearSource bilinear_source(std::size_t i, std::size_t out, std::size_t in,
                                      Alignment alignment = Alignment::edges) {
  const auto number = [](std::size_t count) { return static_cast<float>(count); };
  float at = 0.0f;
  if (alignment == Alignment::edges) {
    at = std::max(number(in) / number(out) * (number(i) + 0.5f) - 0.5f, 0.0f);
  } else if (out > 1) {
    at = number(in - 1) / number(out - 1) * number(i);
  }
  const std::size_t first = std::min(static_cast<std::size_t>(at), in - 1);
  return {first, std::min(first + 1, in - 1), std::clamp(at - number(first), 0.0f, 1.0f)};
}

/// Keys' cubic convolution kernel with a = -0.75 at the distance x, from 0 to 1.
template <typename T>
constexpr T cubic_near(T x) {
  constexpr T a = T(-0.75);
  return ((a + T(2)) * x - (a + T(3))) * x * x + T(1);
}

/// The same from 1 to 2.
template <typename T>
constexpr T cubic_far(T x) {
  constexpr T a = T(-0.75);
  return ((a * x - T(5) * a) * x + T(8) * a) * x - T(4) * a;
}

/// Weights of the points at -1, 0, 1 and 2 for a point `t` after point 0.
template <typename T>
constexpr std::array<T, 4> cubic_weights(T t) {
  return {cubic_far(t + T(1)), cubic_near(t), cubic_near(T(1) - t), cubic_far(T(2) - t)};
}

}  // namespace vit::internal
