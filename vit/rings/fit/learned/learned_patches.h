// The patches of a model on an image that a learned upsampler looks at: the former may cover a part of the
// image only, or reach beyond its edges. Letters: h, w patches, C values of each.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "vit/image/image.h"
#include "vit/rings/fit/learned/learned_grid.h"

namespace vit::internal {

/// Pixels of an image that patches cover, which may be beyond its edges.
struct CoveredPixels {
  std::ptrdiff_t top = 0, left = 0;
  std::size_t height = 1, width = 1;

  bool operator==(const CoveredPixels& other) const = default;
};
/// Of patches with these centers, `step` pixels apart (y, x).
CoveredPixels covered_pixels(std::span<const double> ys, std::span<const double> xs,
                             const std::array<double, 2>& step);

/// A copy of these pixels, the edges of the image repeated, and their queries.
class CoveredImage {
 public:
  CoveredImage(std::shared_ptr<const PixelUpsampler> upsampler, const Image& image,
               const CoveredPixels& place, int threads);
  CoveredImage(const CoveredImage&) = delete;
  CoveredImage& operator=(const CoveredImage&) = delete;

  const CoveredPixels& place() const { return place_; }
  const ImageQueries& queries() const { return queries_; }

 private:
  CoveredPixels place_;
  Image pixels_;
  ImageQueries queries_;
};

class LearnedPatches {
 public:
  /// Throws Error for an image or features that the network cannot be used for.
  LearnedPatches(std::shared_ptr<const CoveredImage> image, const PatchMap& patches, int threads);

  /// G, 1 or more: columns g C / G .. (g + 1) C / G of values have weights of their own.
  std::size_t num_groups() const { return grid_.num_groups(); }
  /// The values (n, C) of the pixels of a tile of the image, of at most 64 x 64, of those of the patches
  /// (h w, C). Pixels that no patch covers have the values of the next one that is covered.
  void values_of(const MapTile& tile, TensorView<const float> values, TensorView<float> out,
                 AttentionMemory& memory) const;

 private:
  std::shared_ptr<const CoveredImage> image_;
  LearnedGrid grid_;
};

}  // namespace vit::internal
