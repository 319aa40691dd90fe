// torch's antialias kernel on float data: DINOv3 resizes after rescaling, without an 8-bit stage.
#include <algorithm>
#include <vector>

#include "vit/base/checked.h"
#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/image/resample.h"
#include "vit/image/resample_axis.h"

namespace vit {

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
  Rows rows{axis.first.front(), 0};
  for (std::size_t i = 0; i < axis.first.size(); ++i) {
    rows.first = std::min(rows.first, axis.first[i]);
    rows.end = std::max(rows.end, axis.first[i] + axis.count[i]);
  }
  return rows;
}

void resize_weighted(ImageView image, const float (&levels)[256], const AxisSpan& column_span,
                     const AxisSpan& row_span, ResizeFilter filter, int threads, TensorView<float> out) {
  const std::size_t height = out.dim(1);
  const std::size_t width = out.dim(2);
  const bool columns_change = column_span.in != column_span.out;
  const bool rows_change = row_span.in != row_span.out;
  constexpr std::size_t kMaxIntermediateBytes = std::size_t{1} << 30;
  const std::size_t row_floats = checked_mul(width, 3, "resize");
  const FloatAxis columns(column_span, filter);
  const FloatAxis rows(row_span, filter);
  const Rows wanted = rows_change ? input_rows(rows) : Rows{row_span.begin, row_span.end};
  const std::size_t between_height = wanted.end - wanted.first;
  VIT_CHECK(checked_mul(checked_mul(between_height, row_floats, "resize"), sizeof(float), "resize") <=
                kMaxIntermediateBytes,
            "resize", "a picture of ", image.width(), " x ", image.height(),
            " needs above 1 GiB between the two passes");
  Tensor<float> between(Shape{between_height, row_floats});
  parallel_for(between_height, threads, [&](std::size_t y, int) {
    const std::uint8_t* const from = image.row(wanted.first + y);
    float* const to = between.data() + y * row_floats;
    if (columns_change) {
      columns_of_row(from, levels, columns, to);
    } else {
      for (std::size_t x = 0; x < row_floats; ++x) to[x] = levels[from[3 * column_span.begin + x]];
    }
  });
  parallel_for(height, threads, [&](std::size_t y, int) {
    std::vector<float> sums(row_floats, 0.0f);
    if (!rows_change) {
      std::copy_n(between.data() + y * row_floats, row_floats, sums.data());
    } else {
      for (std::size_t j = 0; j < rows.count[y]; ++j) {
        const float weight = rows.weights[rows.offset[y] + j];
        const float* const from = between.data() + (rows.first[y] + j - wanted.first) * row_floats;
        for (std::size_t x = 0; x < row_floats; ++x) sums[x] += from[x] * weight;
      }
    }
    write_planes(sums.data(), y, out);
  });
}

}  // namespace

void resize_to_float(ImageView image, float factor, ImageSize target, const ResizeWindow& window,
                     ResizeFilter filter, int threads, TensorView<float> out) {
  check_resize(image.size(), target, window);
  const Shape shape{3, window.height, window.width};
  VIT_CHECK(out.shape() == shape, "resize", "the output must be ", shape.to_string(), ", got ",
            out.shape().to_string());
  if (window.height == 0 || window.width == 0) return;
  const AxisSpan columns{image.width(), target.width, window.left, window.left + window.width};
  const AxisSpan rows{image.height(), target.height, window.top, window.top + window.height};
  float levels[256];
  for (int v = 0; v < 256; ++v) levels[v] = static_cast<float>(v) * factor;
  if (filter != ResizeFilter::nearest) {
    resize_weighted(image, levels, columns, rows, filter, threads, out);
    return;
  }
  const auto from_y = nearest_inputs(rows, Resampler::torchvision_float);
  const auto from_x = nearest_inputs(columns, Resampler::torchvision_float);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < from_y.size(); ++y) {
      float* const plane = out.row(c * from_y.size() + y);
      for (std::size_t x = 0; x < from_x.size(); ++x)
        plane[x] = levels[image.row(from_y[y])[3 * from_x[x] + c]];
    }
  }
}

}  // namespace vit
