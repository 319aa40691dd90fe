// torch's antialias kernel on float data: DINOv3 resizes after rescaling, without an 8-bit stage.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resample_rows.h"
#include "vit/image/resize_limits.h"
#include "vit/image/resize_memory.h"

namespace vit::internal {

namespace {

/// Columns from `first_column` on, 3 bytes each -> out (W', 3): weighted sums of in * factor.
void columns_of_row(const std::uint8_t* in, std::size_t first_column, const float (&levels)[256],
                    const FloatAxis& axis, float* out) {
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    const float* const weights = axis.weights.data() + axis.offset[i];
    const std::uint8_t* tap = in + 3 * (axis.first[i] - first_column);
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

/// The pass along a row of one plane.
void plane_columns(const float* in, const AxisSpan& span, const FloatAxis& axis, float* out) {
  if (span.in == span.out) {
    std::copy(in + span.begin, in + span.end, out);
    return;
  }
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    const float* const weights = axis.weights.data() + axis.offset[i];
    const float* const taps = in + axis.first[i];
    float sum = 0.0f;
    for (std::size_t j = 0; j < axis.count[i]; ++j) sum += taps[j] * weights[j];
    out[i] = sum;
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

/// Inputs [first, end) that the outputs of an axis read.
struct Inputs {
  std::size_t first = 0;
  std::size_t end = 0;
};

Inputs inputs_of(const FloatAxis& axis) {
  Inputs inputs{.first = axis.first.front()};
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    inputs.first = std::min(inputs.first, axis.first[i]);
    inputs.end = std::max(inputs.end, axis.first[i] + axis.count[i]);
  }
  return inputs;
}

/// The pass across rows: the weighted sum of the inputs of one output, each a row returned by `row_at`.
template <typename RowAt>
void sum_rows(const FloatAxis& axis, std::size_t output, std::size_t row_floats, float* sums,
              const RowAt& row_at) {
  std::fill_n(sums, row_floats, 0.0f);
  for (std::size_t j = 0; j < axis.count[output]; ++j) {
    const float weight = axis.weights[axis.offset[output] + j];
    const float* const from = row_at(axis.first[output] + j);
    for (std::size_t x = 0; x < row_floats; ++x) sums[x] += from[x] * weight;
  }
}

void resize_weighted(const PixelRows& in, const float (&levels)[256], const AxisSpan& column_span,
                     const AxisSpan& row_span, ResizeFilter filter, int threads, ResizeMemory& memory,
                     TensorView<float> out) {
  const std::size_t height = out.dim(1);
  const bool columns_change = column_span.in != column_span.out;
  const bool rows_change = row_span.in != row_span.out;
  const std::size_t row_floats = checked_mul(out.dim(2), 3, kResize);
  const Blur blur = blur_of({row_span.in, column_span.in}, {row_span.out, column_span.out}, filter);
  const FloatAxis& columns = memory.float_columns.find(column_span, filter, blur.columns);
  const FloatAxis& rows = memory.float_rows.find(row_span, filter, blur.rows);
  const Inputs wanted = rows_change ? inputs_of(rows) : Inputs{.first = row_span.begin, .end = row_span.end};
  const std::size_t between_height = wanted.end - wanted.first;
  const std::size_t between_floats = checked_mul(between_height, row_floats, kResize);
  check_intermediate(checked_mul(between_floats, sizeof(float), kResize), {between_height, out.dim(2)});
  float* const between = memory.float_between.take(between_floats);
  parallel_for(between_height, threads, [&](std::size_t y, int) {
    const std::uint8_t* const from = in.at(wanted.first + y, 0);
    float* const to = between + y * row_floats;
    if (columns_change) {
      columns_of_row(from, 0, levels, columns, to);
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
    sum_rows(rows, y, row_floats, sums,
             [&](std::size_t from) { return between + (from - wanted.first) * row_floats; });
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

void resize_planes(TensorView<const float> in, ImageSize target, const ResizeWindow& window,
                   ResizeFilter filter, int threads, ResizeMemory& memory, TensorView<float> out) {
  const std::size_t num_planes = in.dim(0), in_height = in.dim(1), in_width = in.dim(2);
  check_resize({in_height, in_width}, target, window);
  const Shape shape{num_planes, window.height, window.width};
  VIT_CHECK(out.shape() == shape, kResize, "the output must be ", shape.to_string(), ", got ",
            out.shape().to_string());
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{
      .in = in_width, .out = target.width, .begin = window.left, .end = window.left + window.width};
  const AxisSpan rows{
      .in = in_height, .out = target.height, .begin = window.top, .end = window.top + window.height};
  if (filter == ResizeFilter::nearest) {
    const NearestAxis& from_y = memory.nearest_rows.find(rows, Resampler::torchvision_float);
    const NearestAxis& from_x = memory.nearest_columns.find(columns, Resampler::torchvision_float);
    parallel_for(num_planes * window.height, threads, [&](std::size_t row, int) {
      const float* const from = in.row(row / window.height * in_height + from_y.inputs[row % window.height]);
      for (std::size_t x = 0; x < window.width; ++x) out.row(row)[x] = from[from_x.inputs[x]];
    });
    return;
  }
  const Blur blur = blur_of({rows.in, columns.in}, {rows.out, columns.out}, filter);
  const FloatAxis& column_axis = memory.float_columns.find(columns, filter, blur.columns);
  const FloatAxis& row_axis = memory.float_rows.find(rows, filter, blur.rows);
  const bool rows_change = rows.in != rows.out;
  const Inputs wanted = rows_change ? inputs_of(row_axis) : Inputs{.first = rows.begin, .end = rows.end};
  const std::size_t between_height = wanted.end - wanted.first;
  const std::size_t between_floats = checked_mul(between_height, window.width, kResize);
  check_intermediate(checked_mul(between_floats, sizeof(float), kResize), {between_height, window.width});
  float* const between = memory.float_between.take(between_floats);  // of one plane
  for (std::size_t k = 0; k < num_planes; ++k) {
    parallel_for(between_height, threads, [&](std::size_t y, int) {
      plane_columns(in.row(k * in_height + wanted.first + y), columns, column_axis,
                    between + y * window.width);
    });
    parallel_for(window.height, threads, [&](std::size_t y, int) {
      float* const to = out.row(k * window.height + y);
      if (!rows_change) {
        std::copy_n(between + y * window.width, window.width, to);
        return;
      }
      sum_rows(row_axis, y, window.width, to,
               [&](std::size_t from) { return between + (from - wanted.first) * window.width; });
    });
  }
}

FloatRowResize::FloatRowResize(ImageSize in, float factor, ImageSize target, const ResizeWindow& window,
                               ResizeFilter filter, ResizeMemory& memory)
    : memory_(memory), window_(window) {
  check_resize(in, target, window);
  for (int v = 0; v < 256; ++v) levels_[v] = static_cast<float>(v) * factor;
  wanted_ = {window.left, window.left + window.width};
  first_row_ = window.top;
  num_rows_ = window.height;
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{.in = in.width, .out = target.width, .begin = wanted_.begin, .end = wanted_.end};
  const AxisSpan rows{
      .in = in.height, .out = target.height, .begin = window.top, .end = window.top + window.height};
  if (filter == ResizeFilter::nearest) {
    nearest_columns_ = &memory.nearest_columns.find(columns, Resampler::torchvision_float);
    nearest_rows_ = &memory.nearest_rows.find(rows, Resampler::torchvision_float);
    wanted_ = {nearest_columns_->inputs.front(), nearest_columns_->inputs.back() + 1};
    return;
  }
  const Blur blur = blur_of({rows.in, columns.in}, {rows.out, columns.out}, filter);
  const FloatAxis& column_axis = memory.float_columns.find(columns, filter, blur.columns);
  const FloatAxis& row_axis = memory.float_rows.find(rows, filter, blur.rows);
  if (columns.in != columns.out) {
    column_axis_ = &column_axis;
    const Inputs inputs = inputs_of(column_axis);
    wanted_ = {inputs.first, inputs.end};
  }
  if (rows.in != rows.out) {
    row_axis_ = &row_axis;
    const Inputs inputs = inputs_of(row_axis);
    first_row_ = inputs.first;
    num_rows_ = inputs.end - inputs.first;
    most_inputs_ = *std::max_element(row_axis.count.begin(), row_axis.count.end());
  }
  check_intermediate(checked_mul(checked_mul(num_rows_, window.width, kResize), 3 * sizeof(float), kResize),
                     {num_rows_, window.width});
}

void FloatRowResize::run(RowSource& rows, TensorView<float> out) const {
  const Shape shape{3, window_.height, window_.width};
  VIT_CHECK(out.shape() == shape, kResize, "the output must be ", shape.to_string(), ", got ",
            out.shape().to_string());
  if (nearest_rows_ != nullptr) {
    take_nearest(rows, out);
  } else {
    resize_weighted(rows, out);
  }
  rows.finish();
}

void FloatRowResize::take_nearest(RowSource& rows, TensorView<float> out) const {
  const ColumnRange held = rows.start(wanted_);
  std::uint8_t* const strip = memory_.strip.take(checked_mul(held.count(), 3, kResize));
  std::size_t end = 0;  // of the rows that were read
  for (std::size_t y = 0; y < window_.height; ++y) {
    const std::size_t from = nearest_rows_->inputs[y];
    if (from >= end) {
      rows.skip(from - end);
      rows.read(strip, 1);
      end = from + 1;
    }
    for (std::size_t c = 0; c < 3; ++c) {
      float* const plane = out.row(c * window_.height + y);
      for (std::size_t x = 0; x < window_.width; ++x)
        plane[x] = levels_[strip[3 * (nearest_columns_->inputs[x] - held.begin) + c]];
    }
  }
}

void FloatRowResize::resize_weighted(RowSource& rows, TensorView<float> out) const {
  const ColumnRange held = rows.start(wanted_);
  const std::size_t held_bytes = checked_mul(held.count(), 3, kResize);
  const std::size_t row_floats = checked_mul(window_.width, 3, kResize);
  std::uint8_t* const strip = memory_.strip.take(checked_mul(kStripRows, held_bytes, kResize));
  float* const sums = memory_.sums.take(row_floats);
  SlidingRows<float> arrived(memory_.float_between, row_floats, most_inputs_, kStripRows);
  rows.skip(first_row_);
  std::size_t output = 0;
  while (output < window_.height) {
    const std::size_t count = std::min(kStripRows, num_rows_ - arrived.end());
    float* const to =
        arrived.append(count, row_axis_ != nullptr ? row_axis_->first[output] - first_row_ : output);
    rows.read(strip, count);
    for (std::size_t y = 0; y < count; ++y) {
      const std::uint8_t* const from = strip + y * held_bytes;
      float* const sum = to + y * row_floats;
      if (column_axis_ != nullptr) {
        columns_of_row(from, held.begin, levels_, *column_axis_, sum);
      } else {
        for (std::size_t x = 0; x < row_floats; ++x)
          sum[x] = levels_[from[3 * (wanted_.begin - held.begin) + x]];
      }
    }
    for (; output < window_.height; ++output) {
      if (row_axis_ == nullptr) {
        if (output == arrived.end()) break;
        write_planes(arrived.row(output), output, out);
        continue;
      }
      const FloatAxis& axis = *row_axis_;
      if (axis.first[output] - first_row_ + axis.count[output] > arrived.end()) break;
      sum_rows(axis, output, row_floats, sums,
               [&](std::size_t from) { return arrived.row(from - first_row_); });
      write_planes(sums, output, out);
    }
  }
}

}  // namespace vit::internal
