#include "vit/rings/prompts/geometry_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "vit/position/sine_code.h"

namespace vit::internal {
namespace {

/// Samples of one bin along an axis: cells and their weights, of which those beyond the map have none.
struct AxisSample {
  std::size_t low = 0, high = 0;
  double high_weight = 0.0;
  bool is_inside = false;
};

AxisSample sample_at(double position, std::size_t cells) {
  const auto count = static_cast<double>(cells);
  if (position < -1.0 || position > count) return {};
  const double inside = std::max(position, 0.0);
  const auto low = static_cast<std::size_t>(inside);
  if (low + 1 >= cells) return {cells - 1, cells - 1, 0.0, true};
  return {low, low + 1, inside - static_cast<double>(low), true};
}

/// The samples of all bins along an axis, `per_bin` each.
struct AxisSamples {
  std::vector<AxisSample> samples;
  std::size_t per_bin = 1;

  AxisSamples(double centre, double size, std::size_t cells, std::size_t bins) {
    const auto count = static_cast<double>(cells);
    const double first = (centre - 0.5 * size) * count, last = (centre + 0.5 * size) * count;
    const double side = std::max(last - first, 1.0), bin = side / static_cast<double>(bins);
    per_bin = static_cast<std::size_t>(std::ceil(bin));
    for (std::size_t i = 0; i < bins * per_bin; ++i) {
      const double within = (static_cast<double>(i % per_bin) + 0.5) / static_cast<double>(per_bin);
      samples.push_back(sample_at(first + (static_cast<double>(i / per_bin) + within) * bin, cells));
    }
  }
};

}  // namespace

void pool_region(TensorView<const float> map, std::size_t grid, const ExampleBox& box, std::size_t bins,
                 float* out) {
  const AxisSamples rows(box.cy, box.height, grid, bins), columns(box.cx, box.width, grid, bins);
  const std::size_t dim = map.num_columns();
  std::vector<double> sums(dim);
  const double count = static_cast<double>(rows.per_bin) * static_cast<double>(columns.per_bin);
  for (std::size_t bin = 0; bin < bins * bins; ++bin) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t i = 0; i < rows.per_bin * columns.per_bin; ++i) {
      const AxisSample& y = rows.samples[bin / bins * rows.per_bin + i / columns.per_bin];
      const AxisSample& x = columns.samples[bin % bins * columns.per_bin + i % columns.per_bin];
      if (!y.is_inside || !x.is_inside) continue;
      const double weights[] = {(1.0 - y.high_weight) * (1.0 - x.high_weight),
                                (1.0 - y.high_weight) * x.high_weight, y.high_weight * (1.0 - x.high_weight),
                                y.high_weight * x.high_weight};
      const float* const cells[] = {map.row(y.low * grid + x.low), map.row(y.low * grid + x.high),
                                    map.row(y.high * grid + x.low), map.row(y.high * grid + x.high)};
      for (std::size_t corner = 0; corner < 4; ++corner) {
        for (std::size_t c = 0; c < dim; ++c)
          sums[c] += weights[corner] * static_cast<double>(cells[corner][c]);
      }
    }
    for (std::size_t c = 0; c < dim; ++c) out[c * bins * bins + bin] = static_cast<float>(sums[c] / count);
  }
}

GeometryEncoder::GeometryEncoder(GeometryLayers layers, std::size_t bins)
    : layers_(std::move(layers)), bins_(bins) {}

/// rows (n, D) = what a box says by its numbers, what lies under it, where it lies, and whether it is wanted.
void GeometryEncoder::embed(std::span<const ExampleBox> boxes, TensorView<const float> tokens,
                            TensorView<float> rows, PromptMemory& memory) const {
  const std::size_t count = boxes.size(), dim = rows.num_columns(), half = dim / 2;
  const auto grid = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(tokens.num_rows()))));
  const TensorView<float> map = memory.normed.rows(tokens.num_rows(), dim);
  layers_.vision_norm.forward(tokens, map, memory.threads);
  const TensorView<float> numbers = memory.boxes.rows(count, 4);
  const TensorView<float> regions = memory.products.rows(count, dim * bins_ * bins_);
  const TensorView<float> places = memory.positions.rows(count, dim + 2);
  parallel_for(count, memory.threads, [&](std::size_t i, int) {
    const ExampleBox& box = boxes[i];
    const double values[] = {box.cx, box.cy, box.width, box.height};
    for (std::size_t k = 0; k < 4; ++k) numbers.row(i)[k] = static_cast<float>(values[k]);
    pool_region(map, grid, box, bins_, regions.row(i));
    sine_code_of_value(box.cy, {places.row(i), half});
    sine_code_of_value(box.cx, {places.row(i) + half, half});
    places.row(i)[dim] = static_cast<float>(box.height);
    places.row(i)[dim + 1] = static_cast<float>(box.width);
  });
  const Pass pass = memory.pass();
  layers_.direct.forward(numbers, rows, pass);
  layers_.pool.forward(regions, rows, pass, {.residual = rows});
  layers_.position.forward(places, rows, pass, {.residual = rows});
  for (std::size_t i = 0; i < count; ++i) {
    const float* const label = layers_.labels.view().row(boxes[i].positive ? 1 : 0);
    for (std::size_t c = 0; c < dim; ++c) rows.row(i)[c] += label[c];
  }
}

TensorView<const float> GeometryEncoder::forward(std::span<const ExampleBox> boxes,
                                                 TensorView<const float> tokens, TensorView<const float> code,
                                                 PromptMemory& memory) const {
  const std::size_t dim = tokens.num_columns(), count = boxes.size() + 1;
  const TensorView<float> embedded = memory.states.rows(count, dim);
  if (!boxes.empty()) embed(boxes, tokens, embedded.part(0, boxes.size()), memory);
  std::ranges::copy(layers_.class_token.flat(), embedded.row(boxes.size()));
  const TensorView<float> rows = memory.geometry.rows(count, dim);
  layers_.final.forward(embedded, rows, memory.pass());
  layers_.prompt_norm.forward(rows, rows, memory.threads);
  const TensorView<float> keys = memory.key_rows.rows(tokens.num_rows(), dim);
  add_rows(tokens, code, keys, memory.threads);
  for (const PreNormLayer& layer : layers_.layers) layer.forward(rows, {}, keys, tokens, memory);
  layers_.output_norm.forward(rows, rows, memory.threads);
  return rows;
}

}  // namespace vit::internal
