// The passes of a resize, their order, and the parts of the picture each needs.
#include "vit/image/resample.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "vit/base/checked.h"
#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/image/resample_axis.h"
#include "vit/kernels/kernels.h"

namespace vit {

namespace {

constexpr std::size_t kMaxIntermediateBytes = std::size_t{1} << 30;
constexpr std::size_t kRowsPerTask = 64;

/// Rows of bytes with C channels.
struct Pixels {
  const std::uint8_t* data = nullptr;
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t stride = 0;  // bytes
};

}  // namespace

void check_resize(ImageSize in, ImageSize target, const ResizeWindow& window) {
  constexpr std::size_t kMaxEdge = std::numeric_limits<std::int32_t>::max();
  VIT_CHECK(in.height > 0 && in.width > 0, "resize", "the picture has no pixels");
  VIT_CHECK(target.height > 0 && target.width > 0, "resize", "a picture of ", in.width, " x ", in.height,
            " cannot become ", target.width, " x ", target.height);
  VIT_CHECK(
      target.height <= kMaxEdge && target.width <= kMaxEdge && in.height <= kMaxEdge && in.width <= kMaxEdge,
      "resize", in.width, " x ", in.height, " to ", target.width, " x ", target.height,
      ": edges end at 2^31 - 1 pixels");
  // More than the libraries themselves could hold; keeps the work on windows of absurdly long pictures
  // bounded.
  constexpr std::size_t kMaxTargetPixels = std::size_t{1} << 31;
  VIT_CHECK(target.height <= kMaxTargetPixels / target.width, "resize", in.width, " x ", in.height, " to ",
            target.width, " x ", target.height, ": above 2^31 pixels");
  VIT_CHECK(window.top <= target.height && window.height <= target.height - window.top &&
                window.left <= target.width && window.width <= target.width - window.left,
            "resize", "the window lies outside the target of ", target.width, " x ", target.height);
}

namespace {

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

void columns_pass(const Pixels& in, std::size_t channels, const FixedAxis& axis,
                  const ResampleOptions& options, TensorView<std::uint8_t> out) {
  const std::size_t out_stride = out.dim(1) * channels;
  parallel_for_parts(in.height, kRowsPerTask, options.threads, [&](std::size_t y, std::size_t num_rows) {
    const kernels::ResampleRows rows{in.data + y * in.stride, in.stride, out.data() + y * out_stride,
                                     out_stride};
    if (channels == 3 && options.loops == ResampleLoops::vectorised) {
      kernels::default_kernels().resample.columns_rgb(rows, num_rows, in.width * 3, axis.view());
    } else {
      kernels::resample_columns_reference(rows, num_rows, channels, axis.view());
    }
  });
}

void rows_pass(const Pixels& in, std::size_t channels, const FixedAxis& axis, const ResampleOptions& options,
               TensorView<std::uint8_t> out) {
  const std::size_t row_bytes = in.width * channels;
  constexpr std::size_t kOutputsPerTask = 16;
  const kernels::ResampleAxis all = axis.view();
  parallel_for_parts(
      all.num_outputs, kOutputsPerTask, options.threads, [&](std::size_t y, std::size_t count) {
        kernels::ResampleAxis part = all;
        part.first += y;
        part.count += y;
        part.offset += y;
        part.num_outputs = count;
        const kernels::ResampleRows rows{in.data, in.stride, out.data() + y * row_bytes, row_bytes};
        if (options.loops == ResampleLoops::vectorised) {
          kernels::default_kernels().resample.rows(rows, row_bytes, part);
        } else {
          kernels::resample_rows_reference(rows, row_bytes, part);
        }
      });
}

Tensor<std::uint8_t> intermediate(std::size_t height, std::size_t width, std::size_t channels) {
  const std::size_t bytes = checked_mul(checked_mul(height, width, "resize"), channels, "resize");
  VIT_CHECK(bytes <= kMaxIntermediateBytes, "resize", "the picture between the two passes would be ", width,
            " x ", height, " pixels, above 1 GiB; scale the picture down in steps");
  return Tensor<std::uint8_t>(Shape{height, width, channels});
}

void copy_window(const Pixels& in, std::size_t channels, const ResizeWindow& window,
                 TensorView<std::uint8_t> out) {
  for (std::size_t y = 0; y < window.height; ++y) {
    const std::uint8_t* const from = in.data + (window.top + y) * in.stride + window.left * channels;
    std::copy_n(from, window.width * channels, out.data() + y * window.width * channels);
  }
}

void nearest(const Pixels& in, std::size_t channels, const AxisSpan& columns, const AxisSpan& rows,
             Resampler resampler, TensorView<std::uint8_t> out) {
  const std::vector<std::size_t> from_x = nearest_inputs(columns, resampler);
  const std::vector<std::size_t> from_y = nearest_inputs(rows, resampler);
  std::uint8_t* to = out.data();
  for (const std::size_t y : from_y) {
    for (const std::size_t x : from_x) to = std::copy_n(in.data + y * in.stride + x * channels, channels, to);
  }
}

void resize_weighted(const Pixels& in, std::size_t channels, const AxisSpan& columns, const AxisSpan& rows,
                     const ResampleOptions& options, TensorView<std::uint8_t> out) {
  const bool rows_change = rows.in != rows.out;
  const bool columns_change = columns.in != columns.out;
  if (!rows_change) {  // the columns pass alone, on the wanted rows
    const Pixels wanted{in.data + rows.begin * in.stride, rows.end - rows.begin, in.width, in.stride};
    columns_pass(wanted, channels, FixedAxis(columns, options.filter, options.resampler), options, out);
    return;
  }
  FixedAxis row_axis(rows, options.filter, options.resampler);
  if (!columns_change) {
    const Pixels wanted{in.data + columns.begin * channels, in.height, columns.end - columns.begin,
                        in.stride};
    rows_pass(wanted, channels, row_axis, options, out);
    return;
  }
  FixedAxis column_axis(columns, options.filter, options.resampler);
  const bool rows_first = options.resampler == Resampler::pillow &&
                          vertical_first(options.pillow, {rows.in, columns.in}, {rows.out, columns.out});
  if (rows_first) {
    const std::size_t origin = column_axis.first_input();
    const std::size_t width = column_axis.end_input() - origin;
    Tensor<std::uint8_t> between = intermediate(rows.end - rows.begin, width, channels);
    rows_pass({in.data + origin * channels, in.height, width, in.stride}, channels, row_axis, options,
              between.view());
    column_axis.shift_origin(origin);
    columns_pass({between.data(), rows.end - rows.begin, width, width * channels}, channels, column_axis,
                 options, out);
  } else {
    const std::size_t origin = row_axis.first_input();
    const std::size_t height = row_axis.end_input() - origin;
    const std::size_t width = columns.end - columns.begin;
    Tensor<std::uint8_t> between = intermediate(height, width, channels);
    columns_pass({in.data + origin * in.stride, height, in.width, in.stride}, channels, column_axis, options,
                 between.view());
    row_axis.shift_origin(origin);
    rows_pass({between.data(), height, width, width * channels}, channels, row_axis, options, out);
  }
}

void resize_any(const Pixels& in, std::size_t channels, ImageSize target, const ResizeWindow& window,
                const ResampleOptions& options, TensorView<std::uint8_t> out) {
  check_resize({in.height, in.width}, target, window);
  VIT_CHECK(options.resampler != Resampler::torchvision_float, "resize",
            "the float resampler has no 8-bit result");
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{in.width, target.width, window.left, window.left + window.width};
  const AxisSpan rows{in.height, target.height, window.top, window.top + window.height};
  if (columns.in == columns.out && rows.in == rows.out) {
    copy_window(in, channels, window, out);
  } else if (options.filter == ResizeFilter::nearest) {
    nearest(in, channels, columns, rows, options.resampler, out);
  } else {
    resize_weighted(in, channels, columns, rows, options, out);
  }
}

}  // namespace

Image resize(ImageView image, ImageSize target, const ResizeWindow& window, const ResampleOptions& options) {
  check_resize(image.size(), target, window);
  Image out(window.height, window.width);
  resize_any({image.data(), image.height(), image.width(), image.row_stride()}, 3, target, window, options,
             {out.data(), {window.height, window.width, 3}});
  return out;
}

Image resize(ImageView image, ImageSize target, const ResampleOptions& options) {
  return resize(image, target, {.height = target.height, .width = target.width}, options);
}

void resize_pixels(TensorView<const std::uint8_t> in, ImageSize target, const ResizeWindow& window,
                   const ResampleOptions& options, TensorView<std::uint8_t> out) {
  VIT_CHECK(in.rank() == 3 && in.is_contiguous(), "resize", "pixels must be a contiguous (H, W, C), got ",
            in.shape().to_string());
  const std::size_t channels = in.dim(2);
  VIT_CHECK(out.shape() == Shape({window.height, window.width, channels}) && out.is_contiguous(), "resize",
            "the output must be a contiguous ", Shape({window.height, window.width, channels}).to_string(),
            ", got ", out.shape().to_string());
  resize_any({in.data(), in.dim(0), in.dim(1), in.dim(1) * channels}, channels, target, window, options, out);
}

}  // namespace vit
