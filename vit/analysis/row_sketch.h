// Short forms of long rows that bound what the rows themselves would give: coordinates in the directions that
// hold most of a set, and the length of what is left. With orthonormal directions, by Cauchy and Schwarz,
//   x . y <= sketch(x) . sketch(y)   and   |sketch(x) - sketch(y)| <= |x - y|.
#pragma once

#include <cstddef>

#include "vit/base/tensor.h"

namespace vit::internal {

class RowSketch {
 public:
  static constexpr std::size_t kWidth = 64;

  /// Directions for rows like `rows` (n, C), C > kWidth: nearly the first singular vectors of a sample.
  explicit RowSketch(TensorView<const float> rows);

  /// rows (n, C) -> out (n, kWidth).
  void apply(TensorView<const float> rows, TensorView<float> out) const;

  /// What rounding adds to either inequality at most, for vectors up to length `length`: to a product of rows
  /// or of sketches in float32, whatever the order of its sum, and to half the square of a distance. The
  /// product of C terms is off by C u length^2 (u = 2^-24), that of sketches by kWidth u; a sketch is rounded
  /// by u of its length, and the length of the rest, rounded up, adds 2 sqrt(C 2^-52) < 158 u for C < 10^5.
  static double slack(std::size_t columns, double length);

 private:
  Tensor<double> directions_;  // (kWidth - 1, C)
};

}  // namespace vit::internal
