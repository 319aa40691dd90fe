#include "apps/vit/commands/evaluate/scale_consistency.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"

namespace vit::app {
namespace {

struct Share {
  std::size_t index = 0;  // of the finer or coarser cell
  double weight = 0.0;    // of all shares of one cell 1
};

/// The cells of an axis of `from` cells that overlap cell `at` of an axis of `to` cells.
std::vector<Share> shares_of(std::size_t at, std::size_t to, std::size_t from) {
  std::vector<Share> out;
  // in units of 1 / (from * to) of the axis, which are integers
  const std::size_t begin = at * from, end = (at + 1) * from;
  for (std::size_t i = begin / to; i < from && i * to < end; ++i) {
    const std::size_t overlap = std::min(end, (i + 1) * to) - std::max(begin, i * to);
    out.push_back({i, static_cast<double>(overlap) / static_cast<double>(from)});
  }
  return out;
}

/// Scales `vector` to length 1; a zero vector stays zero.
void normalize(double* vector, std::size_t size) {
  double sum = 0.0;
  for (std::size_t c = 0; c < size; ++c) sum += vector[c] * vector[c];
  if (sum == 0.0) return;
  for (std::size_t c = 0; c < size; ++c) vector[c] /= std::sqrt(sum);
}

}  // namespace

Tensor<double> averaged_patches(TensorView<const float> patches, GridSize grid) {
  const std::size_t channels = patches.shape().last();
  Tensor<double> out(Shape{grid.rows, grid.columns, channels});
  std::ranges::fill(out.flat(), 0.0);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    const std::vector<Share> of_rows = shares_of(row, grid.rows, patches.dim(0));
    for (std::size_t column = 0; column < grid.columns; ++column) {
      double* const to = out.data() + (row * grid.columns + column) * channels;
      for (const Share& y : of_rows) {
        for (const Share& x : shares_of(column, grid.columns, patches.dim(1))) {
          const float* const from = patches.row(y.index * patches.dim(1) + x.index);
          for (std::size_t c = 0; c < channels; ++c)
            to[c] += y.weight * x.weight * static_cast<double>(from[c]);
        }
      }
    }
  }
  return out;
}

void ScaleConsistency::add(TensorView<const float> trained, TensorView<const float> other) {
  const std::size_t channels = trained.shape().last();
  VIT_CHECK(channels == other.shape().last(), "ScaleConsistency", "features of ", channels, " and ",
            other.shape().last(), " channels");
  const GridSize grid{trained.dim(0), trained.dim(1)};
  Tensor<double> a = averaged_patches(trained, grid), b = averaged_patches(other, grid);
  std::vector<double> a_sum(channels, 0.0), b_sum(channels, 0.0);
  const std::size_t count = grid.rows * grid.columns;
  double same = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    double* const at = a.data() + i * channels;
    double* const bt = b.data() + i * channels;
    normalize(at, channels);
    normalize(bt, channels);
    for (std::size_t c = 0; c < channels; ++c) {
      same += at[c] * bt[c];
      a_sum[c] += at[c];
      b_sum[c] += bt[c];
    }
  }
  double all = 0.0;
  for (std::size_t c = 0; c < channels; ++c) all += a_sum[c] * b_sum[c];
  same_ += same;
  num_same_ += count;
  others_ += all - same;  // the sum over all pairs is the product of the sums
  num_others_ += count * (count - 1);
}

double ScaleConsistency::same_place() const {
  return num_same_ == 0 ? 0.0 : same_ / static_cast<double>(num_same_);
}

double ScaleConsistency::other_places() const {
  return num_others_ == 0 ? 0.0 : others_ / static_cast<double>(num_others_);
}

}  // namespace vit::app
