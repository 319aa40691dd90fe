#include "vit/position/tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/position/rope.h"

namespace vit::position {
namespace {

using AxisTaps = std::vector<std::vector<Tap>>;

enum class Kernel { triangle, cubic };

// Keys' cubic convolution kernel.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((x - 5.0) * a * x + 8.0 * a) * x - 4.0 * a;
  return 0.0;
}

double triangle(double x) {
  return std::max(0.0, 1.0 - std::abs(x));
}

// Two or four taps around scale * (i + 0.5) - 0.5, without widening. PyTorch rounds the scale to float32 and
// the source coordinate once more, after a fused multiply-add; a double holds that product and sum exactly.
AxisTaps interpolation_taps(std::size_t from, std::size_t to, double scale, Kernel kernel,
                            SourceCoordinates coordinates, bool drops_outside = false) {
  constexpr double kA = -0.75;
  const double last = static_cast<double>(from - 1);
  AxisTaps taps(to);
  for (std::size_t i = 0; i < to; ++i) {
    double source = scale * (static_cast<double>(i) + 0.5) - 0.5;
    if (coordinates == SourceCoordinates::float32) source = static_cast<float>(source);
    if (kernel == Kernel::triangle && !drops_outside) source = std::max(source, 0.0);
    const double base = std::floor(source);
    const double t = source - base;
    const auto add = [&](double offset, double weight) {
      if (drops_outside && (base + offset < 0.0 || base + offset > last)) return;
      taps[i].push_back({static_cast<std::size_t>(std::clamp(base + offset, 0.0, last)), weight});
    };
    if (kernel == Kernel::cubic) {
      add(-1.0, cubic(t + 1.0, kA));
      add(0.0, cubic(t, kA));
      add(1.0, cubic(1.0 - t, kA));
      add(2.0, cubic(2.0 - t, kA));
    } else {
      add(0.0, 1.0 - t);
      add(1.0, t);
    }
  }
  return taps;
}

// Corner on corner: position i lies at i (from - 1) / (to - 1).
AxisTaps aligned_taps(std::size_t from, std::size_t to) {
  AxisTaps taps(to);
  for (std::size_t i = 0; i < to; ++i) {
    const double source =
        to > 1 ? static_cast<double>(i) * static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
    const auto base = std::min(static_cast<std::size_t>(source), from - 1);
    const double t = source - static_cast<double>(base);
    taps[i] = {{base, 1.0 - t}, {std::min(base + 1, from - 1), t}};
  }
  return taps;
}

AxisTaps tiled_taps(std::size_t from, std::size_t to) {
  AxisTaps taps(to);
  for (std::size_t i = 0; i < to; ++i) taps[i] = {{i % from, 1.0}};
  return taps;
}

// Rounded to float32 as in the reference, which moves some rows where `to` equals `from`, too.
AxisTaps bucketed_taps(std::size_t from, std::size_t to) {
  std::vector<float> boundaries;
  for (std::size_t k = 1; k < from; ++k)
    boundaries.push_back(static_cast<float>(static_cast<double>(k) * (1.0 / static_cast<double>(from))));
  const float step = 1.0f / static_cast<float>(to);
  AxisTaps taps(to);
  for (std::size_t i = 0; i < to; ++i) {
    const float begin = std::min(static_cast<float>(i) * step, static_cast<float>(1.0 - 1e-6));
    const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), begin);
    taps[i] = {{static_cast<std::size_t>(after - boundaries.begin()), 1.0}};
  }
  return taps;
}

// Real is the type in which PyTorch computes center and window: float for a float32 tensor.
template <typename Real>
AxisTaps antialias_taps(std::size_t from, std::size_t to, Kernel kernel) {
  const Real scale = static_cast<Real>(from) / static_cast<Real>(to);
  const Real widening = std::max(scale, Real(1));
  const Real inverse = Real(1) / widening;
  const Real support = (kernel == Kernel::cubic ? Real(2) : Real(1)) * widening;
  AxisTaps taps(to);
  for (std::size_t i = 0; i < to; ++i) {
    const Real center = scale * (static_cast<Real>(i) + Real(0.5));
    const Real first = std::trunc(center - support + Real(0.5));
    const Real end = std::trunc(center + support + Real(0.5));
    const auto lo = static_cast<std::size_t>(std::max(first, Real(0)));
    const auto hi = std::min(static_cast<std::size_t>(end), from);
    double sum = 0.0;
    for (std::size_t j = lo; j < hi; ++j) {
      const double x = static_cast<double>((static_cast<Real>(j) - center + Real(0.5)) * inverse);
      taps[i].push_back({j, kernel == Kernel::cubic ? cubic(x, -0.5) : triangle(x)});
      sum += taps[i].back().weight;
    }
    for (Tap& tap : taps[i]) tap.weight /= sum;
  }
  return taps;
}

void check_taps(const AxisWeights& weights, std::size_t from) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (const Tap& tap : weights[i])
      VIT_CHECK(tap.index < from, "resample_table", "output position ", i, " reads position ", tap.index,
                " of ", from);
  }
}

// out (C) = sum over taps of weight * row(index)
template <typename Row>
void blend(std::span<const Tap> taps, std::size_t num_channels, double* out, Row&& row) {
  std::fill_n(out, num_channels, 0.0);
  for (const Tap& tap : taps) {
    const auto* const source = row(tap.index);
    for (std::size_t c = 0; c < num_channels; ++c) out[c] += tap.weight * static_cast<double>(source[c]);
  }
}

}  // namespace

AxisWeights axis_weights(std::size_t from, std::size_t to, TableResampling resampling,
                         SourceCoordinates coordinates) {
  VIT_CHECK(from > 0 && to > 0, "axis_weights", "cannot resample ", from, " positions to ", to);
  const bool rounds = coordinates == SourceCoordinates::float32;
  const bool plus_tenth =
      resampling == TableResampling::bicubic_plus_tenth || resampling == TableResampling::bilinear_plus_tenth;
  const double length = static_cast<double>(from);
  // Along an axis of its own length torch's bilinear kernel copies, whatever the factor.
  const bool is_copied = resampling == TableResampling::bilinear_plus_tenth && from == to;
  double scale = length / (static_cast<double>(to) + (plus_tenth && !is_copied ? 0.1 : 0.0));
  if (rounds) scale = static_cast<float>(scale);
  switch (resampling) {
    case TableResampling::bicubic:
    case TableResampling::bicubic_plus_tenth:
      return AxisWeights(interpolation_taps(from, to, scale, Kernel::cubic, coordinates));
    case TableResampling::bilinear_zeros:
      return AxisWeights(
          interpolation_taps(from, to, scale, Kernel::triangle, coordinates, /*drops_outside=*/true));
    case TableResampling::bilinear:
    case TableResampling::bilinear_plus_tenth:
      return AxisWeights(interpolation_taps(from, to, scale, Kernel::triangle, coordinates));
    case TableResampling::bicubic_antialias:
      return AxisWeights(rounds ? antialias_taps<float>(from, to, Kernel::cubic)
                                : antialias_taps<double>(from, to, Kernel::cubic));
    case TableResampling::bilinear_antialias:
      return AxisWeights(rounds ? antialias_taps<float>(from, to, Kernel::triangle)
                                : antialias_taps<double>(from, to, Kernel::triangle));
    case TableResampling::bilinear_aligned: return AxisWeights(aligned_taps(from, to));
    case TableResampling::tiled: return AxisWeights(tiled_taps(from, to));
    case TableResampling::bucketed: return AxisWeights(bucketed_taps(from, to));
  }
  fail("axis_weights", "unknown resampling ", static_cast<int>(resampling));
}

bool is_reused(GridSize from, GridSize to, TableReuse reuse) {
  switch (reuse) {
    case TableReuse::equal_grid: return from == to;
    case TableReuse::equal_count_and_square:
      return num_patches(from) == num_patches(to) && to.rows == to.columns;
    case TableReuse::never: return false;
  }
  fail("is_reused", "unknown rule ", static_cast<int>(reuse));
}

Tensor<float> add_axis_tables(TensorView<const float> tables, GridSize grid) {
  const std::size_t count = num_patches(grid);
  VIT_CHECK(tables.rank() == 3 && !tables.empty() && tables.dim(0) == 2 && grid.columns <= tables.dim(1) &&
                grid.rows <= tables.dim(1),
            "add_axis_tables", "tables ", tables.describe(), " have no rows for a grid of ", to_string(grid));
  const std::size_t length = tables.dim(1), num_channels = tables.num_columns();
  Tensor<float> out(Shape{count, num_channels});
  for (std::size_t patch = 0; patch < count; ++patch) {
    const float* const of_column = tables.row(patch % grid.columns);
    const float* const of_row = tables.row(length + patch / grid.columns);
    for (std::size_t c = 0; c < num_channels; ++c)
      out.data()[patch * num_channels + c] = of_column[c] + of_row[c];
  }
  return out;
}

Tensor<float> resample_table(TensorView<const float> table, std::size_t num_prefix_rows, GridSize from,
                             GridSize to, TableResampling resampling, SourceCoordinates coordinates) {
  return resample_table(table, num_prefix_rows, from,
                        axis_weights(from.rows, to.rows, resampling, coordinates),
                        axis_weights(from.columns, to.columns, resampling, coordinates));
}

Tensor<float> resample_table(TensorView<const float> table, std::size_t num_prefix_rows, GridSize from,
                             const AxisWeights& vertical, const AxisWeights& horizontal) {
  const GridSize to{vertical.size(), horizontal.size()};
  const std::size_t num_from = num_patches(from);
  const std::size_t num_to = num_patches(to);
  VIT_CHECK(!table.empty() && table.rank() == 2 &&
                table.dim(0) == checked_add(num_prefix_rows, num_from, "resample_table"),
            "resample_table", "table ", table.describe(), " does not have ", num_prefix_rows,
            " prefix rows and a grid of ", to_string(from));
  check_taps(vertical, from.rows);
  check_taps(horizontal, from.columns);
  const std::size_t num_channels = table.num_columns();
  Tensor<float> out(Shape{checked_add(num_prefix_rows, num_to, "resample_table"), num_channels});
  for (std::size_t r = 0; r < num_prefix_rows; ++r) {
    std::copy_n(table.row(r), num_channels, out.data() + r * num_channels);
  }
  std::vector<double> line(
      checked_mul(from.columns, num_channels, "resample_table"));  // one output row, old columns
  std::vector<double> sum(num_channels);
  for (std::size_t row = 0; row < to.rows; ++row) {
    for (std::size_t column = 0; column < from.columns; ++column) {
      blend(vertical[row], num_channels, line.data() + column * num_channels,
            [&](std::size_t r) { return table.row(num_prefix_rows + r * from.columns + column); });
    }
    for (std::size_t column = 0; column < to.columns; ++column) {
      blend(horizontal[column], num_channels, sum.data(),
            [&](std::size_t c) { return line.data() + c * num_channels; });
      float* const cell = out.data() + (num_prefix_rows + row * to.columns + column) * num_channels;
      std::transform(sum.begin(), sum.end(), cell, [](double value) { return static_cast<float>(value); });
    }
  }
  return out;
}

}  // namespace vit::position
