// Brings a learned position table to another grid, with the resampling arithmetic of the reference libraries.
// Letters: p = prefix rows (class, distillation), N = patches of a grid, C = channels.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config.h"

namespace vit::position {

/// One source row and its weight.
struct Tap {
  std::size_t index = 0;
  double weight = 0.0;
};

/// What every output position of one axis is made of. Immutable.
class VIT_API AxisWeights {
 public:
  explicit AxisWeights(std::vector<std::vector<Tap>> taps) : taps_(std::move(taps)) {}
  std::size_t size() const noexcept { return taps_.size(); }
  /// Taps of one output position, by rising index; an index at the border may occur more than once. Weights
  /// sum to 1.
  std::span<const Tap> operator[](std::size_t output) const noexcept { return taps_[output]; }

 private:
  std::vector<std::vector<Tap>> taps_;
};

/// Precision of the source coordinates from which weights follow.
enum class SourceCoordinates {
  /// Rounded to float32 where PyTorch rounds them. A coordinate of 37 carries an error of 2e-6, which
  /// moves a table of unit variance by up to 2e-5; with the same rounding it meets PyTorch's to 4e-6.
  float32,
  exact,
};

/// Weights of one axis from `from` to `to` positions, align_corners = false. With c = from / to * (i + 0.5):
///   bicubic             a = -0.75; taps floor(c - 0.5) - 1 .. + 2, clamped to the table
///   bicubic_plus_tenth  the same with c = from / (to + 0.1) * (i + 0.5)
///   bilinear            taps of c - 0.5 (at least 0) and its successor, clamped
///   bicubic_antialias   a = -0.5, widened by from / to when shrinking, taps outside dropped, sum 1
///   bilinear_antialias  the same with the triangle kernel
/// Throws Error if a length is zero.
VIT_API AxisWeights axis_weights(std::size_t from, std::size_t to, TableResampling resampling,
                                 SourceCoordinates coordinates = SourceCoordinates::float32);

/// Whether the reference uses the table of grid `from` as it is for grid `to`:
///   equal_grid              from == to (timm; original scripts of rope-vit, EVA-02, Perception Encoder)
///   equal_count_and_square  as many patches, and `to` is square (Hugging Face, Meta DINOv2)
VIT_API bool is_reused(GridSize from, GridSize to, TableReuse reuse);

/// The table (p + from.rows * from.columns, C) for grid `to`: (p + to.rows * to.columns, C). The first p rows
/// are copied. Sums are taken in double and rounded once. Throws Error if the table does not have the rows
/// of its grid.
VIT_API Tensor<float> resample_table(TensorView<const float> table, std::size_t num_prefix_rows,
                                     GridSize from, GridSize to, TableResampling resampling,
                                     SourceCoordinates coordinates = SourceCoordinates::float32);

}  // namespace vit::position
