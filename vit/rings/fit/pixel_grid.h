// The patches around the pixels of an image and their weights, which is what PixelUpsampling means, and the
// features of an image.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/pixels.h"
#include "vit/rings/fit/learned/learned_patches.h"

namespace vit::internal {

/// The patches of a row or column on both sides of a pixel: a value there is (1 - t) v[low] + t v[high].
struct Between {
  std::size_t low = 0;
  std::size_t high = 0;
  double t = 0;

  std::size_t nearest() const { return t < 0.5 ? low : high; }
};

/// For the centers of pixels 0 .. count - 1 along one axis, with the ascending `centers` of patches; pixels
/// beyond the first or last center have its value.
std::vector<Between> between_centers(std::size_t count, std::span<const double> centers);

using Color3 = std::array<float, 3>;  // red, green, blue, 0 to 1

inline Color3 color_at(const Image& image, std::size_t x, std::size_t y) {
  const std::uint8_t* const pixel = image.row(y) + 3 * x;
  return {static_cast<float>(pixel[0]) / 255.0f, static_cast<float>(pixel[1]) / 255.0f,
          static_cast<float>(pixel[2]) / 255.0f};
}

// Guided weights are normal distributions of the distances of a pixel from the patches around the nearest
// one, and of its color from theirs.
inline constexpr std::size_t kGuidedRadius = 2;  // patches on each side
inline constexpr double kSpaceSigma = 0.75;      // in steps from patch to patch
inline constexpr double kColorSigma = 0.1;       // of colors from 0 to 1

/// Those patches along one axis.
struct Neighborhood {
  std::size_t first = 0, last = 0;  // last is excluded
};
inline Neighborhood neighborhood(std::size_t middle, std::size_t count) {
  return {middle - std::min(middle, kGuidedRadius), std::min(middle + kGuidedRadius + 1, count)};
}

/// A patch of a grid, and its part of a pixel.
struct WeightedPatch {
  std::size_t patch = 0;
  double weight = 0;
};

/// Those of one pixel; the weights are not negative, and their sum is 1.
class PatchWeights {
 public:
  static constexpr std::size_t kMost = 25;  // of guided: five by five

  void clear() { count_ = 0; }
  void add(std::size_t patch, double weight) { patches_[count_++] = {patch, weight}; }
  std::span<WeightedPatch> all() { return {patches_.data(), count_}; }
  std::span<const WeightedPatch> all() const { return {patches_.data(), count_}; }

 private:
  std::array<WeightedPatch, kMost> patches_{};
  std::size_t count_ = 0;
};

/// The features of the patches of an image at one scale, of one pass or of several that are interleaved.
struct FeatureGrid {
  std::vector<double> ys, xs;          // (h), (w) centers of patches in pixels of the image, ascending
  Tensor<float> features;              // (h w, C)
  std::vector<Between> rows, columns;  // (H), (W)
  std::vector<Color3> colors;          // (h w) of guided: mean colors of the patches; else empty
  std::array<double, 2> step{1, 1};    // pixels from a patch to the next, y and x
  std::shared_ptr<const LearnedPatches> learned{};  // makes pixels of patches; else null

  std::size_t num_patches() const { return ys.size() * xs.size(); }
  /// The patch whose center is nearest to a pixel.
  std::size_t nearest(std::size_t x, std::size_t y) const {
    return rows[y].nearest() * xs.size() + columns[x].nearest();
  }
  /// The patches that make the features of a pixel of `image`, which only guided weights look at. Not of
  /// learned.
  void weigh(const Image& image, std::size_t x, std::size_t y, PatchWeights& out) const;
  /// Adds to `out` (K, count) what weigh() makes of values of patches (h w, K) for the pixels from (x, y) on
  /// to the right; in float, all pixels near a patch together. Not of learned.
  void add_row(const Image& image, std::size_t y, std::size_t x, TensorView<const float> values,
               TensorView<float> out) const;
  /// Takes the mean colors of the patches: from now on weights are guided.
  void guide(const Image& image);
  /// From now on a learned network makes pixels of patches, which looks at the features as they are now.
  /// `covered`: the image of another scale of the same one, or null; becomes this one's.
  void learn(const Image& image, const std::shared_ptr<const PixelUpsampler>& upsampler,
             std::shared_ptr<const CoveredImage>& covered, int threads);
  /// Scales the features of each patch, those of each of `num_layers`, to length one.
  void normalize(std::size_t num_layers);

 private:
  void add_guided(const Image& image, std::size_t y, std::size_t x, TensorView<const float> values,
                  TensorView<float> out) const;
};

}  // namespace vit::internal

namespace vit {

struct PixelFeatures::State {
  PixelOptions options;
  ImageSize size;
  Image image;                               // of guided, learned and color; else empty
  std::vector<internal::FeatureGrid> grids;  // of each scale
  std::size_t num_features = 0;
};

}  // namespace vit
