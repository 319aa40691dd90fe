// Classes of pixels from a few labeled ones: features of a frozen model for every pixel of an image, a
// classifier that is fitted on the labeled pixels, and the classes of all others.
// Letters: H, W = height and width of an image, C features of a pixel, K classes, n rows.
//
// ```
// vit::PixelExtractor extractor(vit::Model::load("model"), {.size = {.kind = vit::InputSize::Kind::native}});
// const vit::Image photo = vit::decode_file("photo.jpg");
// const vit::PixelFeatures features = extractor.extract(photo);
// vit::Tensor<std::int32_t> labels(vit::Shape{photo.height(), photo.width()});
// std::ranges::fill(labels.flat(), -1);                // not labeled
// labels.view().row(10)[12] = 0;                       // background
// labels.view().row(photo.height() / 2)[90] = 1;       // what is looked for
// vit::PixelTrainer trainer;
// trainer.add(features, labels);
// vit::PixelHead head = trainer.fit();
// head.classifier.labels = {"background", "leaf"};
// head.save("leaf.safetensors");
// const vit::Tensor<std::int32_t> classes = head.classes(features);  // (H, W)
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/fit.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/session.h"

namespace vit {

/// How the features of patches become those of pixels. All are means of the features of patches around the
/// pixel, with weights of sum 1.
enum class PixelUpsampling {
  bilinear,  // between the centers of patches
  /// Between the centers of patches of several passes, for which the image is moved by parts of a patch.
  shift,
  /// Joint bilateral upsampling (Kopf et al. 2007): weights fall with distance, and with the difference of
  /// the colors of pixel and patch, so that maps follow the edges of the image.
  guided,
};

/// "bilinear", "shift" or "guided".
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
  std::size_t shifts = 2;    // of PixelUpsampling::shift: passes along each axis
  bool color = false;        // red, green and blue of the pixel, 0 to 1, are features too
  bool unit_length = false;  // the vector of each patch, layer and scale is scaled to length 1
};

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

  ImageSize size() const noexcept;               // H x W of the image
  std::size_t num_features() const noexcept;     // C
  const PixelOptions& options() const noexcept;  // how they were made
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

  const std::shared_ptr<const Model>& model() const noexcept;  // that runs the images
  const PixelOptions& options() const noexcept;                // as given
  /// The features of an image. Throws Error as Session::run does, and if they are not finite.
  PixelFeatures extract(ImageView image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a cross-validation held out.
enum class HeldOut {
  nothing,  // there was none
  strokes,  // pixels of a class that are connected, one set of them after another
  images,   // whole images
};

/// "nothing", "strokes" or "images".
VIT_API const char* to_string(HeldOut held_out);

/// A classifier of pixels: fitted, saved, loaded and applied.
struct VIT_API PixelHead {
  ClassifierHead classifier;  // of the features of a pixel
  PixelOptions options;       // what these are
  /// (K) what each class is called in the files that it was learned from, for comparing with others like
  /// them: "3" of an index, "#ff0000" of a color, a name.
  std::vector<std::string> sources{};
  bool has_background = false;                  // whether class 0 is all that these files do not label
  std::size_t num_images = 0;                   // with labels
  std::size_t num_pixels = 0;                   // labeled
  HeldOut held_out = HeldOut::nothing;          // by the cross-validation
  std::optional<double> cross_validated_iou{};  // mean over the classes of the labeled pixels held out

  /// The most probable class of each pixel (H, W), the lower one of equals. Throws Error for features that
  /// were made otherwise. `threads`: 0 = all; the result does not depend on it.
  Tensor<std::int32_t> classes(const PixelFeatures& features, int threads = 0) const;
  /// The probabilities of the classes (K, H, W).
  Tensor<float> probabilities(const PixelFeatures& features, int threads = 0) const;

  /// Records the model that the head belongs to.
  void attach(const Model& from);
  /// Throws Error naming both models if the head belongs to another one.
  void check(const Model& from) const;
  /// Writes the head to a safetensors file, atomically.
  void save(const std::filesystem::path& path) const;
  /// Throws Error naming the file and its defect.
  static PixelHead load(const std::filesystem::path& path);
};

/// Collects the labeled pixels of images and fits a head. The labeled pixels of one class and stroke (pixels
/// of a class that touch each other, also by their corners) that are nearest to the same patch are one row of
/// training, the mean of their features.
class VIT_API PixelTrainer {
 public:
  PixelTrainer();
  ~PixelTrainer();
  PixelTrainer(PixelTrainer&&) noexcept;
  PixelTrainer& operator=(PixelTrainer&&) noexcept;

  /// Adds an image with its labels (H, W): classes from 0, or -1 = not labeled. Throws Error for labels of
  /// another size or below -1, and for features that were made otherwise than those before.
  void add(const PixelFeatures& features, TensorView<const std::int32_t> labels, int threads = 0);
  std::size_t num_images() const noexcept;         // with labels
  std::size_t num_pixels() const noexcept;         // labeled
  TensorView<const float> rows() const;            // (n, C)
  std::span<const std::uint32_t> classes() const;  // (n) of the rows
  /// Fits a head. Held out by the cross-validation are images if several have labels, else strokes, up to
  /// options.num_folds folds; if no class has two of them, nothing. The strength is the smallest of
  /// 1e-4, 1e-3, .. 100 with the best mean IoU. Throws Error for fewer than two classes, and as fit_linear()
  /// does.
  PixelHead fit(FitMethod method = FitMethod::logistic, const FitOptions& options = {}) const;
  /// Without training: what is like the pixels labeled 1, by the cosine of their mean and that of the pixels
  /// labeled 0, the background. The two classes are separated in the middle between their means, and
  /// probabilities follow from their common variance. The features must have unit_length.
  PixelHead fit_example() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vit
