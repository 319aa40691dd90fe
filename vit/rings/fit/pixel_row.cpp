// Values of patches for a row of pixels: FeatureGrid::weigh() for many pixels at a time, in float.
#include <algorithm>
#include <array>
#include <cmath>

#include "vit/rings/fit/exp_of_negative.h"
#include "vit/rings/fit/pixel_grid.h"

namespace vit::internal {
namespace {

constexpr std::size_t kRun = 16;  // pixels of one patch that are computed together
// Of exponents: -1 / (2 sigma^2).
constexpr auto kSpaceFactor = static_cast<float>(-0.5 / (kSpaceSigma * kSpaceSigma));
constexpr auto kColorFactor = static_cast<float>(-0.5 / (kColorSigma * kColorSigma));

/// Pixels of a row that are near the same patch, and their colors.
struct Run {
  std::size_t count = 0;
  std::array<std::array<float, kRun>, 3> colors{};
};

}  // namespace

void FeatureGrid::add_row(const Image& image, std::size_t y, std::size_t x, TensorView<const float> values,
                          TensorView<float> out) const {
  if (!colors.empty()) return add_guided(image, y, x, values, out);
  const Between& row = rows[y];
  const std::size_t width = xs.size();
  const auto down = static_cast<float>(row.t);
  for (std::size_t i = 0; i < out.dim(1); ++i) {
    const Between& column = columns[x + i];
    const auto across = static_cast<float>(column.t);
    const float *const a = values.row(row.low * width + column.low),
                       *const b = values.row(row.low * width + column.high),
                       *const c = values.row(row.high * width + column.low),
                       *const d = values.row(row.high * width + column.high);
    for (std::size_t k = 0; k < out.dim(0); ++k)
      out.row(k)[i] +=
          (1 - down) * ((1 - across) * a[k] + across * b[k]) + down * ((1 - across) * c[k] + across * d[k]);
  }
}

void FeatureGrid::add_guided(const Image& image, std::size_t y, std::size_t x, TensorView<const float> values,
                             TensorView<float> out) const {
  const Neighborhood down = neighborhood(rows[y].nearest(), ys.size());
  std::array<std::array<float, kRun>, PatchWeights::kMost> weights;
  for (std::size_t begin = 0; begin < out.dim(1);) {
    Run run;
    const std::size_t middle = columns[x + begin].nearest();
    for (; run.count < kRun && begin + run.count < out.dim(1); ++run.count) {
      if (columns[x + begin + run.count].nearest() != middle) break;
      const Color3 color = color_at(image, x + begin + run.count, y);
      for (std::size_t k = 0; k < 3; ++k) run.colors[k][run.count] = color[k];
    }
    const Neighborhood across = neighborhood(middle, xs.size());
    const std::size_t count = run.count;
    const float *const reds = run.colors[0].data(), *const greens = run.colors[1].data(),
                       *const blues = run.colors[2].data();
    std::array<float, kRun> largest, sum{};
    largest.fill(-1e30f);
    std::size_t used = 0;
    for (std::size_t r = down.first; r < down.last; ++r) {
      const double dy = (static_cast<double>(y) + 0.5 - ys[r]) / step[0];
      for (std::size_t c = across.first; c < across.last; ++c, ++used) {
        const Color3& of_patch = colors[r * xs.size() + c];
        // of x the square of a linear function
        const auto first = static_cast<float>((static_cast<double>(x + begin) + 0.5 - xs[c]) / step[1]);
        const auto each = static_cast<float>(1 / step[1]), vertical = static_cast<float>(dy * dy);
        float* const to = weights[used].data();
        for (std::size_t i = 0; i < count; ++i) {
          const float dx = first + each * static_cast<float>(static_cast<std::int32_t>(i));
          const float red = reds[i] - of_patch[0], green = greens[i] - of_patch[1],
                      blue = blues[i] - of_patch[2];
          to[i] =
              (vertical + dx * dx) * kSpaceFactor + (red * red + green * green + blue * blue) * kColorFactor;
          largest[i] = largest[i] < to[i] ? to[i] : largest[i];
        }
      }
    }
    for (std::size_t p = 0; p < used; ++p) {
      float* const of = weights[p].data();
      for (std::size_t i = 0; i < count; ++i) of[i] = exp_of_negative(of[i] - largest[i]);
      for (std::size_t i = 0; i < count; ++i) sum[i] += of[i];
    }
    for (std::size_t k = 0; k < out.dim(0); ++k) {
      std::array<float, kRun> mean{};
      std::size_t p = 0;
      for (std::size_t r = down.first; r < down.last; ++r) {
        for (std::size_t c = across.first; c < across.last; ++c, ++p) {
          const float value = values.row(r * xs.size() + c)[k];
          const float* const of = weights[p].data();
          for (std::size_t i = 0; i < count; ++i) mean[i] += of[i] * value;
        }
      }
      for (std::size_t i = 0; i < count; ++i) out.row(k)[begin + i] += mean[i] / sum[i];
    }
    begin += count;
  }
}

}  // namespace vit::internal
