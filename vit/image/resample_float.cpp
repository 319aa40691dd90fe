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
  const std::size_t height = out.size(1);
  const std::size_t width = out.size(2);
  for (std::size_t c = 0; c < 3; ++c) {
    float* const plane = out.row(c * height + y);
    for (std::size_t x = 0; x < width; ++x) plane[x] = row[3 * x + c];
  }
}

void resize_weighted(ImageView image, const float (&levels)[256], ResizeFilter filter, int threads,
                     TensorView<float> out) {
  const std::size_t height = out.size(1);
  const std::size_t width = out.size(2);
  constexpr std::size_t kMaxIntermediateBytes = std::size_t{1} << 30;
  const std::size_t row_floats = checked_mul(width, 3, "resize");
  VIT_CHECK(checked_mul(checked_mul(image.height(), row_floats, "resize"), sizeof(float), "resize") <=
                kMaxIntermediateBytes,
            "resize", "a picture of ", image.width(), " x ", image.height(),
            " needs above 1 GiB between the two passes");
  const FloatAxis columns({image.width(), width, 0, width}, filter);
  const FloatAxis rows({image.height(), height, 0, height}, filter);
  Tensor<float> between(Shape{image.height(), row_floats});
  parallel_for(image.height(), threads, [&](std::size_t y, int) {
    float* const to = between.data() + y * row_floats;
    if (image.width() == width) {
      for (std::size_t x = 0; x < row_floats; ++x) to[x] = levels[image.row(y)[x]];
    } else {
      columns_of_row(image.row(y), levels, columns, to);
    }
  });
  parallel_for(height, threads, [&](std::size_t y, int) {
    std::vector<float> sums(row_floats, 0.0f);
    if (image.height() == height) {
      std::copy_n(between.data() + y * row_floats, row_floats, sums.data());
    } else {
      for (std::size_t j = 0; j < rows.count[y]; ++j) {
        const float weight = rows.weights[rows.offset[y] + j];
        const float* const from = between.data() + (rows.first[y] + j) * row_floats;
        for (std::size_t x = 0; x < row_floats; ++x) sums[x] += from[x] * weight;
      }
    }
    write_planes(sums.data(), y, out);
  });
}

}  // namespace

void resize_to_float(ImageView image, float factor, ResizeFilter filter, int threads, TensorView<float> out) {
  VIT_CHECK(!image.empty(), "resize", "the picture has no pixels");
  VIT_CHECK(out.rank() == 3 && out.size(0) == 3 && out.size(1) > 0 && out.size(2) > 0, "resize",
            "the output must be (3, H, W), got ", out.shape().to_string());
  float levels[256];
  for (int v = 0; v < 256; ++v) levels[v] = static_cast<float>(v) * factor;
  if (filter != ResizeFilter::nearest) {
    resize_weighted(image, levels, filter, threads, out);
    return;
  }
  const auto from_y =
      nearest_inputs({image.height(), out.size(1), 0, out.size(1)}, Resampler::torchvision_float);
  const auto from_x =
      nearest_inputs({image.width(), out.size(2), 0, out.size(2)}, Resampler::torchvision_float);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < from_y.size(); ++y) {
      float* const plane = out.row(c * from_y.size() + y);
      for (std::size_t x = 0; x < from_x.size(); ++x)
        plane[x] = levels[image.row(from_y[y])[3 * from_x[x] + c]];
    }
  }
}

}  // namespace vit
