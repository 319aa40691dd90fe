// Features of the pixels of an image, of a frozen model's patches. Letters: H, W = height and width of an
// image, h, w of its patches, C features of a pixel.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/pixel_upsampler.h"
#include "vit/session.h"

namespace vit {

/// How the features of patches become those of pixels. All are means of the features of patches, with
/// weights of sum 1.
enum class PixelUpsampling {
  bilinear,  // between the centers of patches
  /// Between the centers of patches of several passes, for which the image is moved by parts of a patch.
  shift,
  /// Joint bilateral upsampling (Kopf et al. 2007): weights fall with distance, and with the difference of
  /// the colors of pixel and patch, so that maps follow the edges of the image.
  guided,
  learned,  // by the network of PixelOptions::upsampler
};

/// "bilinear", "shift", "guided" or "learned".
VIT_API const char* to_string(PixelUpsampling upsampling);

/// What the features of a pixel are.
struct PixelOptions {
  /// Blocks whose tokens are joined, 0 .. depth - 1; empty = the patches after the final norm.
  std::vector<std::size_t> layers{};
  /// native: as everywhere. Other sizes show the whole image, without crop: fixed with unequal edges is
  /// squashed to them; S x S, and `model` with the model's own S, keep the aspect ratio, shortest edge S,
  /// edges to whole patches. Models of one size only are given the squashed image.
  InputSize size{};
  /// The features of the image at these multiples of the size are joined.
  std::vector<double> scales{1.0};
  PixelUpsampling upsampling = PixelUpsampling::bilinear;  // from patches to pixels
  /// Of PixelUpsampling::learned: looks at the image, and at features before they have unit_length.
  std::shared_ptr<const PixelUpsampler> upsampler{};
  std::size_t shifts = 2;   // of PixelUpsampling::shift: passes along each axis
  bool color = false;       // red, green and blue of the pixel, 0 to 1, are features too
  bool unit_length = true;  // the vector of each patch, layer and scale is scaled to length 1
};

/// How an image is preprocessed for the features of its pixels, by a model with these rules: all of it is
/// shown, at `scale` times the size.
VIT_API PreprocessConfig pixel_preprocessing(const PixelOptions& options, const PreprocessConfig& rules,
                                             const ModelConfig& config, ImageSize image, double scale = 1.0);
/// What a model computes for the features of pixels.
VIT_API Request pixel_request(const PixelOptions& options);

/// The patches of an image at one scale, of one pass or of several that are interleaved.
struct PixelPatches {
  std::span<const double> ys;          // (h) centers in pixels of the image, ascending
  std::span<const double> xs;          // (w) the same
  TensorView<const float> features{};  // (h w, C)
};

/// The features of all pixels of one image. Memory: 4 C bytes for each patch of each pass.
class VIT_API PixelFeatures {
 public:
  ~PixelFeatures();
  PixelFeatures(PixelFeatures&&) noexcept;
  PixelFeatures& operator=(PixelFeatures&&) noexcept;
  /// Of patches that were computed elsewhere, for one scale and one pass: `image` may be of another size than
  /// the one that was computed, and the centers of `patches` count its pixels. Takes copies. Throws Error if
  /// shapes or options contradict each other.
  static PixelFeatures of(ImageView image, PixelOptions options, const PixelPatches& patches);

  ImageSize size() const;               // H x W of the image
  std::size_t num_features() const;     // C
  const PixelOptions& options() const;  // how they were made
  /// The patches of options().scales[scale], valid as long as the features.
  PixelPatches patches(std::size_t scale = 0) const;
  /// The number of the patch whose center is nearest to a pixel, of the first scale.
  std::size_t patch_at(std::size_t x, std::size_t y) const;
  /// The features of a pixel, x < W, y < H, to `out` (C).
  void at(std::size_t x, std::size_t y, std::span<float> out) const;

 private:
  friend class PixelExtractor;
  friend class PixelTrainer;
  friend struct PixelHead;
  struct State;
  explicit PixelFeatures(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Runs images for their features. Must not be shared between threads.
class VIT_API PixelExtractor {
 public:
  /// Throws Error for options that contradict each other or the model.
  explicit PixelExtractor(std::shared_ptr<const Model> model, PixelOptions options = {}, int threads = 0);
  ~PixelExtractor();
  PixelExtractor(PixelExtractor&&) noexcept;
  PixelExtractor& operator=(PixelExtractor&&) noexcept;

  const std::shared_ptr<const Model>& model() const;  // that runs the images
  const PixelOptions& options() const;                // as given
  /// The features of an image. Throws Error as Session::run does, and if they are not finite.
  PixelFeatures extract(ImageView image);

 private:
  struct VIT_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace vit
