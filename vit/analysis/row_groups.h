// A large set of rows as groups of neighbors: what a search needs to know of them before it looks at a row.
// Letters: m rows, G groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vit/analysis/packed_rows.h"
#include "vit/analysis/row_sketch.h"

namespace vit::internal {

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
