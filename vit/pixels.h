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

#include "vit/base/tensor.h"
#include "vit/fit.h"
#include "vit/model.h"
#include "vit/pixel_features.h"

namespace vit {

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
  /// The same file in memory.
  std::string bytes() const;
  /// Throws Error naming the file and its defect. Of PixelUpsampling::learned the network is loaded, too:
  /// from where it was, or from `upsampler`; another one is an Error that names both.
  static PixelHead load(const std::filesystem::path& path, const std::filesystem::path& upsampler = {});
  /// Where that network was when the head was fitted; empty if it needs none. Throws Error as load() does.
  static std::filesystem::path upsampler_file(const std::filesystem::path& path);
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
  std::size_t num_images() const;                  // with labels
  std::size_t num_pixels() const;                  // labeled
  TensorView<const float> rows() const;            // (n, C)
  std::span<const std::uint32_t> classes() const;  // (n) of the rows
  /// Fits a head. Of features with unit_length none is standardized, and logistic functions pass through the
  /// origin, whatever `options` say: strokes of one image then hold for others, too. Classes count equally if
  /// fewer than half of the pixels are labeled: how much was painted says nothing of what is frequent. Held
  /// out by the cross-validation are images if several have labels, else strokes, up to options.num_folds
  /// folds; if no class has two of them, nothing, and the strength is 1. It is the smallest power of ten from
  /// 0.1 to 1e4 (without unit_length from 1e-4 to 100) with the best mean IoU. Throws Error for fewer than
  /// two classes, and as fit_linear() does.
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
