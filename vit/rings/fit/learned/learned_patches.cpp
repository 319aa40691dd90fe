#include "vit/rings/fit/learned/learned_patches.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vit::internal {
namespace {

/// The pixel of `count` from `start` on that is next to one.
std::size_t next_covered(std::size_t pixel, std::ptrdiff_t start, std::size_t count) {
  const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(pixel) - start;
  return static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(place, 0, static_cast<std::ptrdiff_t>(count) - 1));
}

Image copy_of(const Image& image, const CoveredPixels& place) {
  Image out(place.height, place.width);
  for (std::size_t y = 0; y < place.height; ++y) {
    const std::uint8_t* const from = image.row(next_covered(y, -place.top, image.height()));
    std::uint8_t* const to = out.row(y);
    for (std::size_t x = 0; x < place.width; ++x)
      std::copy_n(from + 3 * next_covered(x, -place.left, image.width()), 3, to + 3 * x);
  }
  return out;
}

}  // namespace

CoveredPixels covered_pixels(std::span<const double> ys, std::span<const double> xs,
                             const std::array<double, 2>& step) {
  const auto along = [](std::span<const double> centers, double of_patch, std::ptrdiff_t& first,
                        std::size_t& count) {
    first = static_cast<std::ptrdiff_t>(std::round(centers.front() - of_patch / 2));
    const auto last = static_cast<std::ptrdiff_t>(std::round(centers.back() + of_patch / 2));
    count = static_cast<std::size_t>(std::max<std::ptrdiff_t>(last - first, 1));
  };
  CoveredPixels out;
  along(ys, step[0], out.top, out.height);
  along(xs, step[1], out.left, out.width);
  return out;
}

CoveredImage::CoveredImage(std::shared_ptr<const PixelUpsampler> upsampler, const Image& image,
                           const CoveredPixels& place, int threads)
    : place_(place), pixels_(copy_of(image, place)), queries_(std::move(upsampler), pixels_, threads) {}

LearnedPatches::LearnedPatches(std::shared_ptr<const CoveredImage> image, const PatchMap& patches,
                               int threads)
    : image_(std::move(image)),
      grid_(std::shared_ptr<const ImageQueries>(image_, &image_->queries()), patches, threads) {}

void LearnedPatches::values_of(const MapTile& tile, TensorView<const float> values, TensorView<float> out,
                               AttentionMemory& memory) const {
  const CoveredPixels& place = image_->place();
  const auto row_of = [&](std::size_t y) { return next_covered(y, place.top, place.height); };
  const auto column_of = [&](std::size_t x) { return next_covered(x, place.left, place.width); };
  MapTile covered{.y = row_of(tile.y), .x = column_of(tile.x)};
  covered.height = row_of(tile.y + tile.height - 1) - covered.y + 1;
  covered.width = column_of(tile.x + tile.width - 1) - covered.x + 1;
  if (covered.height == tile.height && covered.width == tile.width)
    return grid_.features_of(covered, values, out, memory);
  Tensor<float> rows(Shape{covered.num_pixels(), values.num_columns()});
  grid_.features_of(covered, values, rows, memory);
  for (std::size_t i = 0; i < tile.num_pixels(); ++i) {
    const std::size_t y = row_of(tile.y + i / tile.width) - covered.y,
                      x = column_of(tile.x + i % tile.width) - covered.x;
    std::copy_n(rows.view().row(y * covered.width + x), values.num_columns(), out.row(i));
  }
}

}  // namespace vit::internal
