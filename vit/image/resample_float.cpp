// torch's antialias kernel on float data: DINOv3 resizes after rescaling, without an 8-bit stage.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_limits.h"
#include "vit/image/resize_memory.h"

namespace vit::internal {

namespace {

/// in (W, 3) bytes -> out (W', 3): weighted sums of in * factor.
void columns_of_row(const std::uint8_t* in, const float (&levels)[256], const FloatAxis& axis, float* out) {
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    const float* const weights = axis.weights.data() + axis.offset[i];
    const std::uint8_t* tap = in + 3 * axis.first[i];
    float red = 0.0f;
    float green = 0.0f;
    float blue = 0.0f;
    for (std::size_t j = 0; j < axis.count[i]; ++j, tap += 3) {
      red += levels[tap[0]] * weights[j];
      green += levels[tap[1]] * weights[j];
      blue += levels[tap[2]] * weights[j];
    }
    out[3 * i] = red;
    out[3 * i + 1] = green;
    out[3 * i + 2] = blue;
  }
}

void write_planes(const float* row, std::size_t y, TensorView<float> out) {
  const std::size_t height = out.dim(1);
  const std::size_t width = out.dim(2);
  for (std::size_t c = 0; c < 3; ++c) {
    float* const plane = out.row(c * height + y);
    for (std::size_t x = 0; x < width; ++x) plane[x] = row[3 * x + c];
  }
}

/// Input rows [first, end) that the outputs of an axis read.
struct Rows {
  std::size_t first = 0;
  std::size_t end = 0;
};

Rows input_rows(const FloatAxis& axis) {
  Rows rows{.first = axis.first.front()};
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    rows.first = std::min(rows.first, axis.first[i]);
    rows.end = std::max(rows.end, axis.first[i] + axis.count[i]);
  }
  return rows;
}

void resize_weighted(const PixelRows& in, const float (&levels)[256], const AxisSpan& column_span,
                     const AxisSpan& row_span, ResizeFilter filter, int threads, ResizeMemory& memory,
                     TensorView<float> out) {
  const std::size_t height = out.dim(1);
  const bool columns_change = column_span.in != column_span.out;
  const bool rows_change = row_span.in != row_span.out;
  const std::size_t row_floats = checked_mul(out.dim(2), 3, kResize);
  const FloatAxis& columns = memory.float_columns.find(column_span, filter);
  const FloatAxis& rows = memory.float_rows.find(row_span, filter);
  const Rows wanted = rows_change ? input_rows(rows) : Rows{.first = row_span.begin, .end = row_span.end};
  const std::size_t between_height = wanted.end - wanted.first;
  const std::size_t between_floats = checked_mul(between_height, row_floats, kResize);
  check_intermediate(checked_mul(between_floats, sizeof(float), kResize), {between_height, out.dim(2)});
  float* const between = memory.float_between.take(between_floats);
  parallel_for(between_height, threads, [&](std::size_t y, int) {
    const std::uint8_t* const from = in.at(wanted.first + y, 0);
    float* const to = between + y * row_floats;
    if (columns_change) {
      columns_of_row(from, levels, columns, to);
    } else {
      for (std::size_t x = 0; x < row_floats; ++x) to[x] = levels[from[3 * column_span.begin + x]];
    }
  });
  if (!rows_change) {
    for (std::size_t y = 0; y < height; ++y) write_planes(between + y * row_floats, y, out);
    return;
  }
  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  float* const all_sums = memory.sums.take(checked_mul(num_threads, row_floats, kResize));
  parallel_for(height, threads, [&](std::size_t y, int thread) {
    float* const sums = all_sums + static_cast<std::size_t>(thread) * row_floats;
    std::fill_n(sums, row_floats, 0.0f);
    for (std::size_t j = 0; j < rows.count[y]; ++j) {
      const float weight = rows.weights[rows.offset[y] + j];
      const float* const from = between + (rows.first[y] + j - wanted.first) * row_floats;
      for (std::size_t x = 0; x < row_floats; ++x) sums[x] += from[x] * weight;
    }
    write_planes(sums, y, out);
  });
}

}  // namespace

void resize_to_float(const PixelRows& in, float factor, ImageSize target, const ResizeWindow& window,
                     ResizeFilter filter, int threads, ResizeMemory& memory, TensorView<float> out) {
  check_resize({in.height, in.width}, target, window);
  const Shape shape{3, window.height, window.width};
  VIT_CHECK(in.channels == 3 && out.shape() == shape, kResize, "the output must be ", shape.to_string(),
            ", got ", out.shape().to_string());
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{
      .in = in.width, .out = target.width, .begin = window.left, .end = window.left + window.width};
  const AxisSpan rows{
      .in = in.height, .out = target.height, .begin = window.top, .end = window.top + window.height};
  float levels[256];
  for (int v = 0; v < 256; ++v) levels[v] = static_cast<float>(v) * factor;
  if (filter != ResizeFilter::nearest) {
    resize_weighted(in, levels, columns, rows, filter, threads, memory, out);
    return;
  }
  const NearestAxis& from_y = memory.nearest_rows.find(rows, Resampler::torchvision_float);
  const NearestAxis& from_x = memory.nearest_columns.find(columns, Resampler::torchvision_float);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < window.height; ++y) {
      float* const plane = out.row(c * window.height + y);
      const std::uint8_t* const row = in.at(from_y.inputs[y], 0);
      for (std::size_t x = 0; x < window.width; ++x) plane[x] = levels[row[3 * from_x.inputs[x] + c]];
    }
  }
}

}  // namespace vit::internal
