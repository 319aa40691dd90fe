// Position encodings given as tables of rows, independent of models: learned ones resampled to another grid
// with the resampling arithmetic of the reference libraries, sines and cosines, and relative distances.
// Letters: p = prefix rows (class, distillation), N = patches of a grid, C = channels; B = images, H = heads,
// L = tokens, d = channels of a head, R = largest distinguished distance.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"

namespace vit::position {

// -------------------------------------------------------------------------------------------- learned tables

/// One source row and its weight.
struct Tap {
  std::size_t index = 0;  // of the source row
  double weight = 0.0;    // may be negative (bicubic)
};

/// The source rows and weights of every output position of one axis. Immutable.
class VIT_API AxisWeights {
 public:
  /// `taps` of every output position.
  explicit AxisWeights(std::vector<std::vector<Tap>> taps) : taps_(std::move(taps)) {}
  std::size_t size() const noexcept { return taps_.size(); }  // output positions
  /// Taps of one output position, by rising index; an index at the border may occur more than once. Weights
  /// sum to 1, but for bilinear_zeros at the border.
  std::span<const Tap> operator[](std::size_t output) const noexcept { return taps_[output]; }

 private:
  std::vector<std::vector<Tap>> taps_;
};

/// Precision of the source coordinates from which weights are computed.
enum class SourceCoordinates {
  /// Rounded to float32 where PyTorch rounds them. A coordinate of 37 carries an error of 2e-6, which
  /// moves a table of unit variance by up to 2e-5; with the same rounding it agrees with PyTorch's to 4e-6.
  float32,
  exact,  // in double
};

/// Weights of one axis from `from` to `to` positions, align_corners = false except for bilinear_aligned. With
/// c = from / to * (i + 0.5):
///   bicubic             a = -0.75; taps floor(c - 0.5) - 1 .. + 2, clamped to the table
///   bicubic_plus_tenth  the same with c = from / (to + 0.1) * (i + 0.5)
///   bilinear            taps of c - 0.5 (at least 0) and its successor, clamped
///   bilinear_plus_tenth the same with c as above, but of an axis of the table's length, which torch copies
///   bilinear_zeros      taps of c - 0.5 and its successor, those outside of the table dropped
///   bicubic_antialias   a = -0.5, widened by from / to when shrinking, taps outside dropped, sum 1
///   bilinear_antialias  the same with the triangle kernel
///   bilinear_aligned    taps of i (from - 1) / (to - 1) and its successor: corners on corners; always exact
///   tiled               one tap, i mod from
///   bucketed            one tap, the number of k in 1 .. from - 1 with k / from <= i / to, in float32
/// Throws Error if a length is zero.
VIT_API AxisWeights axis_weights(std::size_t from, std::size_t to, TableResampling resampling,
                                 SourceCoordinates coordinates = SourceCoordinates::float32);

/// Whether the reference uses the table of grid `from` unchanged for grid `to`:
///   equal_grid              from == to (timm; original scripts of rope-vit, EVA-02, Perception Encoder)
///   equal_count_and_square  as many patches, and `to` is square (Hugging Face, Meta DINOv2)
///   never                   (Hy4 with bicubic interpolation)
VIT_API bool is_reused(GridSize from, GridSize to, TableReuse reuse);

/// Sums of two tables in one, (2, L, C): for each patch of the grid, row by row, row `column` of the first
/// and row `row` of the second; (N, C). Throws Error if the tables are shorter than a side of the grid.
VIT_API Tensor<float> add_axis_tables(TensorView<const float> tables, GridSize grid);

/// The table (p + from.rows * from.columns, C) for grid `to`: (p + to.rows * to.columns, C). The first p rows
/// are copied. Sums are taken in double and rounded once. Throws Error if the table does not have the rows
/// of its grid.
VIT_API Tensor<float> resample_table(TensorView<const float> table, std::size_t num_prefix_rows,
                                     GridSize from, GridSize to, TableResampling resampling,
                                     SourceCoordinates coordinates = SourceCoordinates::float32);

/// The same with weights of each axis, from the grid that they read to the one that they make.
VIT_API Tensor<float> resample_table(TensorView<const float> table, std::size_t num_prefix_rows,
                                     GridSize from, const AxisWeights& vertical,
                                     const AxisWeights& horizontal);

// ----------------------------------------------------------------------------------------- sines and cosines

/// (length, dim) rows: channel 2i is sin(t base^(-2i/dim)), channel 2i + 1 its cosine (Vaswani et al. 2017).
/// T is double or float, rounded once from double. Throws Error if 2 does not divide dim, or base is not
/// positive.
template <typename T>
VIT_API Tensor<T> sinusoidal_1d(std::size_t length, std::size_t dim, double base = 10000.0);

/// (N, dim) rows of a grid, row-major: the first half of the channels is the one-dimensional row of width
/// dim / 2 for the column, the second half that for the row of the patch. Throws Error if 4 does not
/// divide dim.
template <typename T>
VIT_API Tensor<T> sinusoidal_2d(GridSize grid, std::size_t dim, double base = 10000.0);

/// (N, dim) rows of a grid in quarters, as in big_vision and vit-pytorch's SimpleViT: sines of the
/// column, cosines of the column, sines of the row, cosines of the row, each of the F = dim / 4 angles
/// index * base^(-k / (F - 1)). Throws Error if 4 does not divide dim or base is less than 1.
template <typename T>
VIT_API Tensor<T> sinusoidal_2d_quarters(GridSize grid, std::size_t dim, double base = 10000.0);

// ---------------------------------------------------------------------------------------- relative distances

// Clipped relative distances as learned or fixed vectors on keys and values: a separate attention, in
// reference form.

/// Row of the tables for every query i and key j, (L, L): clip(j - i, -R, R) + R.
VIT_API Tensor<std::size_t> relative_index(std::size_t num_tokens, std::size_t max_distance);

/// NEZHA's fixed table (2R + 1, d), for keys and values alike (Wei et al. 2019): row r, which
/// belongs to the distance r - R, has sin(r 10000^(-2i/d)) at channel 2i and the cosine at 2i + 1. T is
/// double or float.
template <typename T>
VIT_API Tensor<T> nezha_table(std::size_t max_distance, std::size_t head_dim);

/// Vectors of distances on keys and values.
template <typename T>
struct RelativeTables {
  TensorView<const T> keys;    // (2R + 1, d)
  TensorView<const T> values;  // (2R + 1, d)
};

/// Settings of relative_attention.
struct RelativeAttentionOptions {
  double scale = 0.0;  // of the scores; 0 means 1 / sqrt(d)
  int threads = 1;     // 0 = all of the machine; results do not depend on it
};

/// Output of relative_attention, and the probabilities.
template <typename T>
struct RelativeAttentionResult {
  Tensor<T> out;            // (B, H, L, d)
  Tensor<T> probabilities;  // (B, H, L, L)
};

/// Attention of Shaw et al. 2018, with a_ij the table rows of relative_index:
///   score_ij = scale * q_i . (k_j + a^K_ij),  probabilities = softmax_j,  out_i = sum_j p_ij (v_j + a^V_ij)
/// q, k, v are (B, H, L, d); T is double or float, sums are taken in double. Throws Error naming the shapes
/// that do not fit.
template <typename T>
VIT_API RelativeAttentionResult<T> relative_attention(TensorView<const T> q, TensorView<const T> k,
                                                      TensorView<const T> v, const RelativeTables<T>& tables,
                                                      const RelativeAttentionOptions& options = {});

}  // namespace vit::position
