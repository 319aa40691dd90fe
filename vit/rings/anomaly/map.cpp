// From distances of patches to a map of the image.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "vit/anomaly.h"
#include "vit/base/check.h"

namespace vit {
namespace {

constexpr double kTruncate = 4.0;  // of scipy's gaussian_filter, in sigmas

/// Where the centers of pixels lie between the centers of patches: value = (1 - t) a[low] + t a[high].
struct Place {
  std::size_t low = 0;
  std::size_t high = 0;
  double t = 0;
};

std::vector<Place> places(std::size_t num_pixels, double start, double step, std::size_t patch_size,
                          std::size_t num_patches) {
  std::vector<Place> out(num_pixels);
  for (std::size_t i = 0; i < num_pixels; ++i) {
    const double input = (static_cast<double>(i) + 0.5 - start) / step;  // pixels of the model's input
    const double at =
        std::clamp(input / static_cast<double>(patch_size) - 0.5, 0.0, static_cast<double>(num_patches - 1));
    const auto low = static_cast<std::size_t>(at);
    out[i] = {.low = low, .high = std::min(low + 1, num_patches - 1), .t = at - static_cast<double>(low)};
  }
  return out;
}

/// Weights of the offsets 0 .. radius.
std::vector<double> gaussian(double sigma) {
  const auto radius = static_cast<std::size_t>(kTruncate * sigma + 0.5);
  std::vector<double> weights(radius + 1);
  double sum = 0;
  for (std::size_t i = 0; i <= radius; ++i) {
    weights[i] = std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma));
    sum += (i == 0 ? 1 : 2) * weights[i];
  }
  for (double& w : weights) w /= sum;
  return weights;
}

/// Index of a sequence that is mirrored at its ends: (d c b a | a b c d | d c b a).
std::size_t mirrored(std::ptrdiff_t index, std::ptrdiff_t count) {
  const std::ptrdiff_t within = ((index % (2 * count)) + 2 * count) % (2 * count);
  return static_cast<std::size_t>(within < count ? within : 2 * count - 1 - within);
}

/// Smooths `count` numbers that lie `step` apart; `line` is scratch for them and their mirrored surroundings.
void smooth_line(float* numbers, std::size_t count, std::size_t step, std::span<const double> weights,
                 std::vector<double>& line) {
  const std::size_t radius = weights.size() - 1;
  line.resize(count + 2 * radius);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t from = mirrored(static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(radius),
                                      static_cast<std::ptrdiff_t>(count));
    line[i] = static_cast<double>(numbers[from * step]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double* const center = line.data() + i + radius;
    double sum = weights[0] * center[0];
    for (std::size_t r = 1; r <= radius; ++r) sum += weights[r] * (*(center - r) + center[r]);
    numbers[i * step] = static_cast<float>(sum);
  }
}

}  // namespace

Tensor<float> anomaly_map(TensorView<const float> distances, ImageSize size, const SourceMap& map,
                          std::size_t patch_size, double sigma) {
  VIT_CHECK(distances.rank() == 2 && distances.num_elements() > 0, "anomaly_map",
            "distances must be (h, w), got ", distances.shape().to_string());
  VIT_CHECK(size.height > 0 && size.width > 0 && patch_size > 0 && map.x_step > 0 && map.y_step > 0,
            "anomaly_map", "an image without pixels");
  VIT_CHECK(sigma >= 0 && sigma <= 1e4, "anomaly_map", "sigma must be 0 to 1e4 pixels, got ", sigma);
  const std::vector<Place> rows = places(size.height, map.top, map.y_step, patch_size, distances.dim(0));
  const std::vector<Place> columns = places(size.width, map.left, map.x_step, patch_size, distances.dim(1));
  Tensor<float> out(Shape{size.height, size.width});
  for (std::size_t y = 0; y < size.height; ++y) {
    const float* const above = distances.row(rows[y].low);
    const float* const below = distances.row(rows[y].high);
    for (std::size_t x = 0; x < size.width; ++x) {
      const Place& at = columns[x];
      const auto between = [&at](const float* row) {
        return (1 - at.t) * static_cast<double>(row[at.low]) + at.t * static_cast<double>(row[at.high]);
      };
      out.view().row(y)[x] =
          static_cast<float>((1 - rows[y].t) * between(above) + rows[y].t * between(below));
    }
  }
  if (sigma == 0) return out;
  const std::vector<double> weights = gaussian(sigma);
  std::vector<double> line;
  for (std::size_t x = 0; x < size.width; ++x)
    smooth_line(out.data() + x, size.height, size.width, weights, line);
  for (std::size_t y = 0; y < size.height; ++y) smooth_line(out.view().row(y), size.width, 1, weights, line);
  return out;
}

}  // namespace vit
