// The 8-bit resize of rows that arrive one after another.
#include "vit/image/resample_rows.h"

#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/image/convert.h"
#include "vit/image/resample_axis.h"
#include "vit/image/resize_limits.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {

RowResize::RowResize(ImageSize in, ImageSize target, const ResizeWindow& window,
                     const ResampleOptions& options, int orientation, ResizeMemory& memory)
    : options_(options), memory_(memory) {
  check_resize(in, target, window);
  VIT_CHECK(options.resampler != Resampler::torchvision_float, kResize,
            "the float resampler has no 8-bit result");
  const bool transposed = is_transposed(orientation);
  const bool mirrored_x = flips_x(orientation);
  const bool mirrored_y = flips_y(orientation);
  AxisSpan columns{
      .in = in.width, .out = target.width, .begin = window.left, .end = window.left + window.width};
  AxisSpan rows{
      .in = in.height, .out = target.height, .begin = window.top, .end = window.top + window.height};
  if (transposed) std::swap(columns, rows);  // from here on as stored
  out_width_ = columns.end - columns.begin;
  const auto place = [](const AxisSpan& span, bool mirrored) -> ColumnRange {
    if (!mirrored) return {span.begin, span.end};
    return {span.in - std::min(span.in, span.end), span.in - std::min(span.in, span.begin)};
  };
  wanted_ = place(columns, mirrored_x);  // of an axis that does not change
  first_row_ = place(rows, mirrored_y).begin;
  num_rows_ = rows.end - rows.begin;
  if (window.height == 0 || window.width == 0) return;
  const bool columns_change = columns.in != columns.out;
  const bool rows_change = rows.in != rows.out;
  if (!columns_change && !rows_change) return;
  if (options.filter == ResizeFilter::nearest) {
    VIT_CHECK(orientation == 1, kResize, "filter nearest requires upright images");
    passes_ = Passes::nearest;
    nearest_columns_ = &memory.nearest_columns.find(columns, options.resampler);
    nearest_rows_ = &memory.nearest_rows.find(rows, options.resampler);
    wanted_ = {nearest_columns_->inputs.front(), nearest_columns_->inputs.back() + 1};
    return;
  }
  if (rows_change) {
    row_axis_ = &memory.rows.find(rows, options.filter, options.resampler, mirrored_y);
    first_row_ = row_axis_->first_input();
    num_rows_ = row_axis_->num_inputs();
    const kernels::ResampleAxis axis = row_axis_->view();
    for (std::size_t i = 0; i < axis.num_outputs; ++i)
      most_inputs_ = std::max(most_inputs_, static_cast<std::size_t>(axis.count[i]));
  }
  if (columns_change) {
    column_axis_ = &memory.columns.find(columns, options.filter, options.resampler, mirrored_x);
    wanted_ = {column_axis_->first_input(), column_axis_->first_input() + column_axis_->num_inputs()};
  }
  if (!rows_change || !columns_change) {
    passes_ = columns_change ? Passes::columns : Passes::rows;
    return;
  }
  const bool upright_rows_first =
      options.resampler == Resampler::pillow && vertical_first(options.pillow, in, target);
  const bool rows_first = upright_rows_first != transposed;
  passes_ = rows_first ? Passes::rows_first : Passes::columns_first;
  const ImageSize between =
      rows_first ? ImageSize{rows.end - rows.begin, wanted_.count()} : ImageSize{num_rows_, out_width_};
  check_intermediate(checked_mul(checked_mul(between.height, between.width, kResize), 3, kResize), between);
}

void RowResize::run(RowSource& rows, std::uint8_t* out) const {
  switch (passes_) {
    case Passes::none: copy(rows, out); break;
    case Passes::nearest: take_nearest(rows, out); break;
    case Passes::columns: resize_columns(rows, out); break;
    case Passes::rows:
    case Passes::columns_first:
    case Passes::rows_first: resize_rows(rows, out); break;
  }
  rows.finish();
}

void RowResize::copy(RowSource& rows, std::uint8_t* out) const {
  const ColumnRange held = rows.start(wanted_);
  std::uint8_t* const strip = memory_.strip.take(checked_mul(held.count(), 3, kResize));
  rows.skip(first_row_);
  for (std::size_t y = 0; y < num_rows_; ++y) {
    rows.read(strip, 1);
    out = std::copy_n(strip + 3 * (wanted_.begin - held.begin), 3 * wanted_.count(), out);
  }
}

void RowResize::take_nearest(RowSource& rows, std::uint8_t* out) const {
  const ColumnRange held = rows.start(wanted_);
  std::uint8_t* const strip = memory_.strip.take(checked_mul(held.count(), 3, kResize));
  std::size_t end = 0;  // of the rows that were read
  for (const std::size_t y : nearest_rows_->inputs) {
    if (y >= end) {
      rows.skip(y - end);
      rows.read(strip, 1);
      end = y + 1;
    }
    for (const std::size_t x : nearest_columns_->inputs)
      out = std::copy_n(strip + 3 * (x - held.begin), 3, out);
  }
}

void RowResize::resize_columns(RowSource& rows, std::uint8_t* out) const {
  const ColumnRange held = rows.start(wanted_);
  const std::size_t row_bytes = checked_mul(held.count(), 3, kResize);
  std::uint8_t* const strip = memory_.strip.take(checked_mul(kStripRows, row_bytes, kResize));
  rows.skip(first_row_);
  for (std::size_t y = 0; y < num_rows_; y += kStripRows) {
    const std::size_t count = std::min(kStripRows, num_rows_ - y);
    rows.read(strip, count);
    columns_pass(strip + 3 * (wanted_.begin - held.begin), row_bytes, count, out + y * 3 * out_width_);
  }
}

void RowResize::resize_rows(RowSource& rows, std::uint8_t* out) const {
  const ColumnRange held = rows.start(wanted_);
  const std::size_t held_bytes = checked_mul(held.count(), 3, kResize);
  const std::size_t first_byte = 3 * (wanted_.begin - held.begin);
  const std::size_t out_bytes = checked_mul(out_width_, 3, kResize);
  const bool columns_first = passes_ == Passes::columns_first;
  const bool rows_first = passes_ == Passes::rows_first;
  constexpr std::size_t kTogether = 4;  // rows processed together by the horizontal pass
  const std::size_t wanted_bytes = 3 * wanted_.count();
  std::uint8_t* const strip = memory_.strip.take(columns_first ? checked_mul(kStripRows, held_bytes, kResize)
                                                 : rows_first  ? kTogether * wanted_bytes
                                                               : 0);
  const std::size_t row_bytes = columns_first ? out_bytes : held_bytes;
  SlidingRows<std::uint8_t> arrived(memory_.between, row_bytes, most_inputs_, kStripRows);
  const kernels::ResampleAxis axis = row_axis_->view();
  std::size_t output = 0;       // the next one of the row axis
  std::size_t num_waiting = 0;  // rows of the strip that wait for the horizontal pass
  rows.skip(first_row_);
  while (output < axis.num_outputs) {
    const std::size_t count = std::min(kStripRows, num_rows_ - arrived.end());
    std::uint8_t* const to = arrived.append(count, static_cast<std::size_t>(axis.first[output]));
    rows.read(columns_first ? strip : to, count);
    if (columns_first) columns_pass(strip + first_byte, held_bytes, count, to);
    for (; output < axis.num_outputs; ++output) {
      if (static_cast<std::size_t>(axis.first[output] + axis.count[output]) > arrived.end()) break;
      if (!rows_first) {
        rows_pass(arrived, out_bytes, output, columns_first ? 0 : first_byte, out + output * out_bytes);
        continue;
      }
      rows_pass(arrived, wanted_bytes, output, first_byte, strip + num_waiting * wanted_bytes);
      if (++num_waiting < kTogether && output + 1 < axis.num_outputs) continue;
      columns_pass(strip, wanted_bytes, num_waiting, out + (output + 1 - num_waiting) * out_bytes);
      num_waiting = 0;
    }
  }
}

/// The first pixel at `in` is the axis' first input.
void RowResize::columns_pass(const std::uint8_t* in, std::size_t in_stride, std::size_t num_rows,
                             std::uint8_t* out) const {
  const kernels::ResampleAxis axis = column_axis_->view();
  const kernels::ResampleRows rows{
      .in = in, .in_stride = in_stride, .out = out, .out_stride = 3 * out_width_};
  if (options_.loops == ResampleLoops::vectorized) {
    kernels::default_kernels().resample.columns_rgb(rows, num_rows, 3 * wanted_.count(), axis);
  } else {
    kernels::resample_columns_reference(rows, num_rows, 3, axis);
  }
}

/// One output of the row axis: `row_bytes` bytes from `first_byte` of its rows on.
void RowResize::rows_pass(const SlidingRows<std::uint8_t>& in, std::size_t row_bytes, std::size_t output,
                          std::size_t first_byte, std::uint8_t* out) const {
  constexpr std::int32_t kAtOnce = 0;
  kernels::ResampleAxis axis = row_axis_->view();
  const auto first = static_cast<std::size_t>(axis.first[output]);
  axis.num_outputs = 1;
  axis.first = &kAtOnce;
  axis.count += output;
  axis.offset += output;
  const kernels::ResampleRows rows{
      .in = in.row(first) + first_byte, .in_stride = in.row_size(), .out = out, .out_stride = row_bytes};
  if (options_.loops == ResampleLoops::vectorized) {
    kernels::default_kernels().resample.rows(rows, row_bytes, axis);
  } else {
    kernels::resample_rows_reference(rows, row_bytes, axis);
  }
}

}  // namespace vit::internal
