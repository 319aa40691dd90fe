// A large set of rows as groups of neighbors: what a search needs to know of them before it looks at a row.
// Letters: m rows, G groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/rings/anomaly/packed_rows.h"

namespace vit::internal {
/// Short forms of long rows that bound what the rows themselves would give: coordinates in the directions
/// that hold most of a set, and the length of what is left. With orthonormal directions, by Cauchy and
/// Schwarz,
///   x . y <= sketch(x) . sketch(y)   and   |sketch(x) - sketch(y)| <= |x - y|.
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

class RowGroups {
 public:
  static constexpr std::size_t kGroup = 64;  // rows of a group, of the last one the rest
  static constexpr std::size_t kBlock = 32;  // rows of a group that are compared together

  /// A ball around the sketches of a group.
  struct Ball {
    double center_square = 0;  // the center times itself
    double radius = 0;
  };

  /// Groups rows (m, C), m < 2^32, C > RowSketch::kWidth. The result does not depend on the number of
  /// threads.
  RowGroups(TensorView<const float> rows, const kernels::LinearKernels& kernels);

  const RowSketch& sketch() const noexcept { return sketch_; }
  /// Which row is at each place; groups are kGroup places that follow each other.
  std::span<const std::uint32_t> order() const noexcept { return order_; }
  const PackedRows& sketches() const noexcept { return sketches_; }      // in this order
  TensorView<const float> centers() const noexcept { return centers_; }  // (G, RowSketch::kWidth)
  std::span<const Ball> balls() const noexcept { return balls_; }        // (G)
  double largest_square() const noexcept { return largest_square_; }     // of a row with itself

 private:
  RowSketch sketch_;
  std::vector<std::uint32_t> order_;
  PackedRows sketches_;
  Tensor<float> centers_;
  std::vector<Ball> balls_;
  double largest_square_ = 0;
};

/// Indices of rows (n, C) in an order in which each `size` that follow each other are near to each other:
/// halves along the direction in which they vary most, and halves of those.
std::vector<std::uint32_t> group_rows(TensorView<const float> rows, std::size_t size);

}  // namespace vit::internal
