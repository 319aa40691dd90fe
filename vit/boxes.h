// Boxes of what is in an image: of the classes that a model was trained for (YOLOS, RF-DETR), or of words
// (OWL-ViT, OWLv2). Letters: N boxes that the model outputs for each image.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit {

/// Something in an image.
struct Detection {
  std::size_t index = 0;  // class
  std::string label;      // name, or the number where there is none
  float score = 0;        // softmax over the classes and none, or sigmoid of the word's score
  Box box;                // in pixels of the image; may reach beyond its edges
};

/// The template that OWL-ViT's processor puts texts into: none.
inline constexpr const char* kPlainTemplate = "{}";

/// Boxes in images, of the classes of the model or of texts.
/// ```
/// vit::Detector("yolos-tiny").detect("photo.jpg");
/// vit::Detector::of_texts(vit::ImageAndText::load("owlv2"), {"a cat", "a dog"}).detect("photo.jpg");
/// ```
class VIT_API Detector : public ImageTask {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model without boxes of classes of its own.
  explicit Detector(const std::filesystem::path& path, const ModelOptions& options = {});
  /// The classes that the model was trained for, by other names if `labels` has them. Throws Error (mismatch)
  /// for a model without boxes, or whose boxes are compared with texts, and for another number of labels.
  explicit Detector(std::shared_ptr<const Model> model, std::vector<std::string> labels = {});
  /// Encoded texts. Throws Error (mismatch) for a model whose boxes are not compared with texts, or in
  /// another space.
  static Detector of_texts(std::shared_ptr<const Model> model, ClassVectors texts);
  /// Texts, for a checkpoint with both towers; without templates as they are.
  static Detector of_texts(const ImageAndText& towers, std::vector<std::string> texts,
                           std::span<const std::string> templates = {});

  std::span<const std::string> labels() const noexcept { return labels_; }  // names of the classes
  float threshold() const noexcept { return threshold_; }  // of scores, that of the library's post-processing

  /// Scores of all boxes before softmax or sigmoid, from outputs of request(): (N, classes + 1) with no
  /// object at the end, or (N, texts). The bits do not depend on the threads.
  Tensor<float> logits(const ImageOutputs& outputs, int threads = 1) const;
  /// The boxes whose best class has a score above `threshold` (nothing: threshold()), in the model's order,
  /// from outputs of request(). Throws Error for a threshold that is not a number.
  std::vector<Detection> detect(const ImageOutputs& outputs, std::optional<float> threshold = std::nullopt,
                                int threads = 1) const;
  /// The boxes in an image, run by a session over the same model. Throws Error as Session::run does.
  std::vector<Detection> detect(Session& session, const ImageSource& image,
                                std::optional<float> threshold = std::nullopt) const;
  /// The boxes in one image, run on all cores.
  std::vector<Detection> detect(const ImageSource& image,
                                std::optional<float> threshold = std::nullopt) const;

 private:
  struct Texts;
  VIT_HIDDEN Detector(std::shared_ptr<const Model> model, std::vector<std::string> labels,
                      std::shared_ptr<const Texts> texts);

  std::vector<std::string> labels_;
  float threshold_ = 0.5f;
  std::shared_ptr<const Texts> texts_;  // null for classes of the model
};

}  // namespace vit
