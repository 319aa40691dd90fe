// The passes of an 8-bit resize, their order, and the parts of the image each needs.
#include "vit/image/resample.h"

#include <algorithm>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_limits.h"
#include "vit/image/resize_memory.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {

namespace {

constexpr std::size_t kRowsPerTask = 64;

PixelRows part_of(const PixelRows& in, std::size_t top, std::size_t left, std::size_t height,
                  std::size_t width) {
  return {.data = in.at(top, left),
          .height = height,
          .width = width,
          .channels = in.channels,
          .row_stride = in.row_stride};
}

/// `out` (H of in, outputs of the axis, C). The first column of `in` is the axis' first input.
void columns_pass(const PixelRows& in, const FixedAxis& axis, const ResampleOptions& options,
                  std::uint8_t* out) {
  const kernels::ResampleAxis weights = axis.view();
  const std::size_t out_stride = weights.num_outputs * in.channels;
  parallel_for_parts(in.height, kRowsPerTask, options.threads, [&](std::size_t y, std::size_t num_rows) {
    const kernels::ResampleRows rows{
        .in = in.at(y, 0), .in_stride = in.row_stride, .out = out + y * out_stride, .out_stride = out_stride};
    if (in.channels == 3 && options.loops == ResampleLoops::vectorized) {
      kernels::default_kernels().resample.columns_rgb(rows, num_rows, in.width * 3, weights);
    } else {
      kernels::resample_columns_reference(rows, num_rows, in.channels, weights);
    }
  });
}

/// `out` (outputs of the axis, W of in, C). The first row of `in` is the axis' first input.
void rows_pass(const PixelRows& in, const FixedAxis& axis, const ResampleOptions& options,
               std::uint8_t* out) {
  const std::size_t row_bytes = in.width * in.channels;
  constexpr std::size_t kOutputsPerTask = 16;
  const kernels::ResampleAxis all = axis.view();
  parallel_for_parts(
      all.num_outputs, kOutputsPerTask, options.threads, [&](std::size_t y, std::size_t count) {
        kernels::ResampleAxis part = all;
        part.first += y;
        part.count += y;
        part.offset += y;
        part.num_outputs = count;
        const kernels::ResampleRows rows{
            .in = in.data, .in_stride = in.row_stride, .out = out + y * row_bytes, .out_stride = row_bytes};
        if (options.loops == ResampleLoops::vectorized) {
          kernels::default_kernels().resample.rows(rows, row_bytes, part);
        } else {
          kernels::resample_rows_reference(rows, row_bytes, part);
        }
      });
}

/// Memory for the image between the two passes.
PixelRows intermediate(Buffer<std::uint8_t>& memory, std::size_t height, std::size_t width,
                       std::size_t channels, std::uint8_t*& data) {
  const std::size_t bytes = checked_mul(checked_mul(height, width, kResize), channels, kResize);
  check_intermediate(bytes, {height, width});
  data = memory.take(bytes);
  return {
      .data = data, .height = height, .width = width, .channels = channels, .row_stride = width * channels};
}

void copy_window(const PixelRows& in, const ResizeWindow& window, std::uint8_t* out) {
  for (std::size_t y = 0; y < window.height; ++y)
    out = std::copy_n(in.at(window.top + y, window.left), window.width * in.channels, out);
}

void nearest(const PixelRows& in, const AxisSpan& columns, const AxisSpan& rows, Resampler resampler,
             ResizeMemory& memory, std::uint8_t* out) {
  const NearestAxis& from_x = memory.nearest_columns.find(columns, resampler);
  const NearestAxis& from_y = memory.nearest_rows.find(rows, resampler);
  for (const std::size_t y : from_y.inputs) {
    for (const std::size_t x : from_x.inputs) out = std::copy_n(in.at(y, x), in.channels, out);
  }
}

void resize_weighted(const PixelRows& in, const AxisSpan& columns, const AxisSpan& rows,
                     const ResampleOptions& options, ResizeMemory& memory, std::uint8_t* out) {
  const bool columns_change = columns.in != columns.out;
  const bool rows_change = rows.in != rows.out;
  const std::size_t out_height = rows.end - rows.begin;
  const std::size_t out_width = columns.end - columns.begin;
  if (!rows_change) {
    const FixedAxis& axis = memory.columns.find(columns, options.filter, options.resampler, false);
    columns_pass(part_of(in, rows.begin, axis.first_input(), out_height, axis.num_inputs()), axis, options,
                 out);
    return;
  }
  const FixedAxis& row_axis = memory.rows.find(rows, options.filter, options.resampler, false);
  if (!columns_change) {
    rows_pass(part_of(in, row_axis.first_input(), columns.begin, row_axis.num_inputs(), out_width), row_axis,
              options, out);
    return;
  }
  const FixedAxis& column_axis = memory.columns.find(columns, options.filter, options.resampler, false);
  const PixelRows wanted = part_of(in, row_axis.first_input(), column_axis.first_input(),
                                   row_axis.num_inputs(), column_axis.num_inputs());
  std::uint8_t* between = nullptr;
  if (options.resampler == Resampler::pillow &&
      vertical_first(options.pillow, {rows.in, columns.in}, {rows.out, columns.out})) {
    const PixelRows rows_done = intermediate(memory.between, out_height, wanted.width, in.channels, between);
    rows_pass(wanted, row_axis, options, between);
    columns_pass(rows_done, column_axis, options, out);
  } else {
    const PixelRows columns_done =
        intermediate(memory.between, wanted.height, out_width, in.channels, between);
    columns_pass(wanted, column_axis, options, between);
    rows_pass(columns_done, row_axis, options, out);
  }
}

}  // namespace

bool vertical_first(PillowRelease release, ImageSize in, ImageSize out) {
  const auto height_loss = static_cast<std::int64_t>(in.height) - static_cast<std::int64_t>(out.height);
  const auto width_loss = static_cast<std::int64_t>(in.width) - static_cast<std::int64_t>(out.width);
  switch (release) {
    case PillowRelease::up_to_12_1: return false;
    case PillowRelease::from_12_2: return in.height > 100 * in.width && height_loss > 0;
    case PillowRelease::from_13_0: return height_loss > 0 && height_loss > 2 * width_loss;
  }
  return false;
}

void check_resize(ImageSize in, ImageSize target, const ResizeWindow& window) {
  constexpr std::size_t kMaxEdge = std::numeric_limits<std::int32_t>::max();
  VIT_CHECK(in.height > 0 && in.width > 0, kResize, "the image has no pixels");
  VIT_CHECK(target.height > 0 && target.width > 0, kResize, "an image of ", in.width, " x ", in.height,
            " cannot be resized to ", target.width, " x ", target.height);
  VIT_CHECK(
      target.height <= kMaxEdge && target.width <= kMaxEdge && in.height <= kMaxEdge && in.width <= kMaxEdge,
      kResizeLimit, in.width, " x ", in.height, " to ", target.width, " x ", target.height,
      ": edges end at 2^31 - 1 pixels");
  // More than the libraries themselves support; bounds the work on windows of extremely long images.
  constexpr std::size_t kMaxTargetPixels = std::size_t{1} << 31;
  VIT_CHECK(target.height <= kMaxTargetPixels / target.width, kResizeLimit, in.width, " x ", in.height,
            " to ", target.width, " x ", target.height, ": above 2^31 pixels");
  VIT_CHECK(window.top <= target.height && window.height <= target.height - window.top &&
                window.left <= target.width && window.width <= target.width - window.left,
            kResize, "the window lies outside the target of ", target.width, " x ", target.height);
}

void check_intermediate(std::size_t bytes, ImageSize size) {
  constexpr std::size_t kMaxIntermediateBytes = std::size_t{1} << 30;
  VIT_CHECK(bytes <= kMaxIntermediateBytes, kResizeLimit, "the image between the two passes would be ",
            size.width, " x ", size.height, " pixels, above 1 GiB; scale the image down in steps");
}

void resize(const PixelRows& in, ImageSize target, const ResizeWindow& window, const ResampleOptions& options,
            ResizeMemory& memory, std::uint8_t* out) {
  check_resize({in.height, in.width}, target, window);
  VIT_CHECK(options.resampler != Resampler::torchvision_float, kResize,
            "the float resampler has no 8-bit result");
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{
      .in = in.width, .out = target.width, .begin = window.left, .end = window.left + window.width};
  const AxisSpan rows{
      .in = in.height, .out = target.height, .begin = window.top, .end = window.top + window.height};
  if (columns.in == columns.out && rows.in == rows.out) {
    copy_window(in, window, out);
  } else if (options.filter == ResizeFilter::nearest) {
    nearest(in, columns, rows, options.resampler, memory, out);
  } else {
    resize_weighted(in, columns, rows, options, memory, out);
  }
}

}  // namespace vit::internal
