#include "vit/rings/fit/pixel_grid.h"

#include <algorithm>
#include <cmath>

namespace vit::internal {
namespace {

double squared_distance(const Color3& a, const Color3& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double difference = static_cast<double>(a[c]) - static_cast<double>(b[c]);
    sum += difference * difference;
  }
  return sum;
}

/// The pixels [first, last) of one axis that a patch covers, at least one.
struct Covered {
  std::size_t first = 0, last = 1;
};

Covered covered(double center, double step, std::size_t count) {
  const auto at = [count](double position) {
    return static_cast<std::size_t>(std::clamp(std::round(position), 0.0, static_cast<double>(count)));
  };
  const std::size_t first = std::min(at(center - step / 2), count - 1);
  return {first, std::max(at(center + step / 2), first + 1)};
}

}  // namespace

std::vector<Between> between_centers(std::size_t count, std::span<const double> centers) {
  std::vector<Between> out(count);
  std::size_t low = 0;
  const std::size_t last = centers.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i) + 0.5;
    while (low < last && centers[low + 1] <= at) ++low;
    const std::size_t high = std::min(low + 1, last);
    const double gap = centers[high] - centers[low];
    out[i] = {low, high, gap > 0 ? std::clamp((at - centers[low]) / gap, 0.0, 1.0) : 0.0};
  }
  return out;
}

void FeatureGrid::guide(const Image& image) {
  colors.resize(num_patches());
  for (std::size_t r = 0; r < ys.size(); ++r) {
    const Covered down = covered(ys[r], step[0], image.height());
    for (std::size_t c = 0; c < xs.size(); ++c) {
      const Covered across = covered(xs[c], step[1], image.width());
      std::array<double, 3> sum{};
      for (std::size_t y = down.first; y < down.last; ++y) {
        for (std::size_t x = across.first; x < across.last; ++x) {
          const Color3 color = color_at(image, x, y);
          for (std::size_t k = 0; k < 3; ++k) sum[k] += static_cast<double>(color[k]);
        }
      }
      const auto count = static_cast<double>((down.last - down.first) * (across.last - across.first));
      for (std::size_t k = 0; k < 3; ++k) colors[r * xs.size() + c][k] = static_cast<float>(sum[k] / count);
    }
  }
}

void FeatureGrid::learn(const Image& image, const std::shared_ptr<const PixelUpsampler>& upsampler,
                        std::shared_ptr<const CoveredImage>& covered, int threads) {
  const CoveredPixels place = covered_pixels(ys, xs, step);
  const PatchMap patches{.grid = {ys.size(), xs.size()}, .features = features};
  upsampler->network().check({place.height, place.width}, patches);  // before all pixels are looked at
  if (covered == nullptr || covered->place() != place)
    covered = std::make_shared<const CoveredImage>(upsampler, image, place, threads);
  learned = std::make_shared<const LearnedPatches>(covered, patches, threads);
}

void FeatureGrid::normalize(std::size_t num_layers) {
  const std::size_t width = features.dim(1) / num_layers;
  for (std::size_t i = 0; i < features.dim(0); ++i) {
    for (std::size_t layer = 0; layer < num_layers; ++layer)
      normalize_vector({features.view().row(i) + layer * width, width});
  }
}

void FeatureGrid::weigh(const Image& image, std::size_t x, std::size_t y, PatchWeights& out) const {
  out.clear();
  const Between &row = rows[y], &column = columns[x];
  const std::size_t width = xs.size();
  if (colors.empty()) {
    const auto add = [&](std::size_t patch, double weight) {
      if (weight > 0) out.add(patch, weight);
    };
    add(row.low * width + column.low, (1 - row.t) * (1 - column.t));
    add(row.low * width + column.high, (1 - row.t) * column.t);
    add(row.high * width + column.low, row.t * (1 - column.t));
    add(row.high * width + column.high, row.t * column.t);
    return;
  }
  const Color3 color = color_at(image, x, y);
  const Neighborhood vertical = neighborhood(row.nearest(), ys.size());
  const Neighborhood horizontal = neighborhood(column.nearest(), width);
  double largest = -1e300;  // exponents are relative to it: the sum is never 0
  for (std::size_t r = vertical.first; r < vertical.last; ++r) {
    const double down = (static_cast<double>(y) + 0.5 - ys[r]) / step[0];
    for (std::size_t c = horizontal.first; c < horizontal.last; ++c) {
      const double across = (static_cast<double>(x) + 0.5 - xs[c]) / step[1];
      const std::size_t patch = r * width + c;
      const double exponent = -(down * down + across * across) / (2 * kSpaceSigma * kSpaceSigma) -
                              squared_distance(color, colors[patch]) / (2 * kColorSigma * kColorSigma);
      out.add(patch, exponent);
      largest = std::max(largest, exponent);
    }
  }
  double sum = 0;
  for (WeightedPatch& of : out.all()) sum += of.weight = std::exp(of.weight - largest);
  for (WeightedPatch& of : out.all()) of.weight /= sum;
}

}  // namespace vit::internal
