// Boxes of what is in an image, in the shape of Classifier: of the classes that a model was trained for
// (YOLOS), or of words (OWL-ViT, OWLv2). Letters: N boxes that the model gives for each image.
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

/// Targets of detection. Immutable; share it between threads.
class VIT_API BoxClasses {
 public:
  /// The classes that the model was trained for, by other names where `labels` has them. Throws Error
  /// (mismatch) for a model without boxes, or whose boxes are compared with texts, and for another number of
  /// labels.
  explicit BoxClasses(const Model& model, std::vector<std::string> labels = {});
  /// Texts. Throws Error (mismatch) for a model whose boxes are not compared with texts, or in another space.
  BoxClasses(const Model& model, ClassVectors texts);
  ~BoxClasses();
  BoxClasses(BoxClasses&&) noexcept;
  BoxClasses& operator=(BoxClasses&&) noexcept;

  /// Names of the classes.
  std::span<const std::string> labels() const noexcept { return labels_; }
  float threshold() const noexcept;  // of scores, that of the library's post-processing

  /// Scores of all boxes before softmax or sigmoid, of an image whose maps were asked for
  /// (Request::set_maps): (N, classes + 1) with no object at the end, or (N, texts). The bits do not depend
  /// on the threads.
  Tensor<float> logits(const ImageOutputs& outputs, int threads = 1) const;
  /// The boxes whose best class has a score above `threshold` (nothing: threshold()), in the model's order.
  std::vector<Detection> detect(const ImageOutputs& outputs, ImageSize image,
                                std::optional<float> threshold = std::nullopt, int threads = 1) const;

 private:
  struct Texts;
  std::vector<std::string> labels_;
  bool boxes_of_square_ = false;
  float threshold_ = 0.5f;
  std::unique_ptr<const Texts> texts_;  // null for classes of the model
};

/// The template that OWL-ViT's processor puts texts into: none.
inline constexpr const char* kPlainTemplate = "{}";

/// Boxes in images. Serves one thread at a time.
///   vit::Detector("yolos-tiny").detect("street.jpg");
///   vit::Detector::of_texts(vit::ImageAndText::load("owlv2"), {"a cat", "a remote
///   control"}).detect("sofa.jpg");
class VIT_API Detector {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model without boxes of classes of its own.
  explicit Detector(const std::filesystem::path& path, SessionOptions options = {},
                    const ModelOptions& model_options = {});
  /// Throws Error for a model without boxes of classes of its own.
  explicit Detector(std::shared_ptr<const Model> model, SessionOptions options = {});
  /// Texts for the images of both towers' checkpoint; no templates mean kPlainTemplate.
  static Detector of_texts(const ImageAndText& towers, std::vector<std::string> texts,
                           std::span<const std::string> templates = {}, SessionOptions options = {});
  /// Texts whose vectors are ready.
  static Detector of_texts(std::shared_ptr<const Model> model, ClassVectors texts,
                           SessionOptions options = {});

  const Model& model() const noexcept { return session_.model(); }  // what it runs
  const BoxClasses& classes() const noexcept { return classes_; }   // what it looks for

  /// An image file. Throws Error as Session::run does.
  std::vector<Detection> detect(const std::filesystem::path& file,
                                std::optional<float> threshold = std::nullopt);
  /// An image file in memory.
  std::vector<Detection> detect(std::span<const std::byte> file,
                                std::optional<float> threshold = std::nullopt);
  /// An image.
  std::vector<Detection> detect(const ImageView& image, std::optional<float> threshold = std::nullopt);

 private:
  Detector(std::shared_ptr<const Model> model, BoxClasses classes, SessionOptions options);

  Session session_;
  BoxClasses classes_;
  Request request_;
  Outputs outputs_;
};

}  // namespace vit
