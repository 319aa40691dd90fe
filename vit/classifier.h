// Classification of images with the classes of the model, of a fitted head, or texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/classifier_head.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit {

namespace internal {
class ClassSource;
}

/// A class and its probability.
struct Prediction {
  std::size_t index;  // class
  std::string label;  // name, or the index if there is none
  float probability;  // softmax over all classes, or sigmoid of this one; for a regression, the logit
  float logit;        // output of the model
};

/// Which classes of an image are predicted: the most probable ones, or all from a threshold on.
struct ClassSelection {
  /// The most probable classes.
  ClassSelection(std::size_t num_classes = 5) : top(num_classes) {}
  /// One threshold for each class; an infinite one excludes its class.
  static ClassSelection above(std::vector<float> thresholds) {
    ClassSelection selection;
    selection.thresholds = std::move(thresholds);
    return selection;
  }

  /// The selected classes of a row of logits (classes), best first; equal logits in index order. A class
  /// without a name in `labels` has its index as the name. `otherwise`: if `activation` is not set. Throws
  /// Error for another number of thresholds.
  VIT_API std::vector<Prediction> of(std::span<const float> logits, std::span<const std::string> labels = {},
                                     ClassActivation otherwise = ClassActivation::softmax) const;

  std::size_t top;                              // if there are no thresholds
  std::vector<float> thresholds{};              // (classes), or none
  std::optional<ClassActivation> activation{};  // nothing = the classifier's
};

/// Classes for the images of one model. Immutable; share it between threads, each with its own Session.
/// ```
/// vit::Classifier("model").classify("photo.jpg");  // the classes of the checkpoint
/// vit::Classifier::of_texts(vit::ImageAndText::load("siglip2"), {"a cat", "a dog"}).classify("photo.jpg");
/// ```
class VIT_API Classifier {
 public:
  Classifier(const Classifier&) = default;  // shares what it was made of; there is no move, so none is empty
  Classifier& operator=(const Classifier&) = default;
  /// The classes of the checkpoint at `path`, a folder or weight file. Throws Error as Model::load() and
  /// of_model() do.
  explicit Classifier(const std::filesystem::path& path, const ModelOptions& options = {});
  /// The classes of the checkpoint. Throws Error (mismatch) if it has no classifier.
  static Classifier of_model(std::shared_ptr<const Model> model);
  /// The classes of a head fitted on features of this model. Throws Error if it was fitted on another one's.
  static Classifier of_head(std::shared_ptr<const Model> model, ClassifierHead head);
  /// Encoded texts, and the score that compares images with them. Throws Error if the vectors are
  /// not (n, E) with a name each, or if there are none.
  static Classifier of_texts(std::shared_ptr<const Model> model, ClassVectors classes, TextScore score);
  /// Texts: encode_classes() and the score of the encoder's tower. Throws Error if that tower was published
  /// without an image tower, and therefore has no score.
  static Classifier of_texts(std::shared_ptr<const Model> model, TextEncoder& encoder,
                             std::vector<std::string> classes, std::span<const std::string> templates = {});
  /// Texts, for a checkpoint with both towers.
  static Classifier of_texts(const ImageAndText& towers, std::vector<std::string> classes,
                             std::span<const std::string> templates = {});

  const std::shared_ptr<const Model>& model() const noexcept { return model_; }  // of the images
  std::size_t size() const noexcept { return labels_->size(); }                  // classes
  /// Names; indices if there are none.
  std::span<const std::string> labels() const noexcept VIT_LIFETIME_BOUND { return *labels_; }
  ClassActivation activation() const noexcept;         // from values to probabilities
  const Request& request() const noexcept;             // for a Session
  const ClassVectors* class_vectors() const noexcept;  // of texts; null for other classes
  /// The same classes with other names. Throws Error for a wrong number of them.
  Classifier with_labels(std::vector<std::string> labels) const;

  /// A value for each class, from outputs of request(): logits, head values, or scaled cosines. Throws
  /// Error if `values` has another size.
  void values(const ImageOutputs& outputs, std::span<float> values) const;
  /// The selected classes for these values(), best first; ties in class order.
  std::vector<Prediction> predict(std::span<const float> values, const ClassSelection& selection = {}) const;
  /// The classes of an image, from the outputs of request().
  std::vector<Prediction> predict(const ImageOutputs& outputs, const ClassSelection& selection = {}) const;
  /// The classes of an image, run by a session over the same model.
  std::vector<Prediction> classify(Session& session, const ImageSource& image,
                                   const ClassSelection& selection = {}) const;
  /// The classes of one image, run on all cores; for many images, use a Session, which keeps its
  /// memory.
  std::vector<Prediction> classify(const ImageSource& image, const ClassSelection& selection = {}) const;

 private:
  VIT_HIDDEN Classifier(std::shared_ptr<const Model> model,
                        std::shared_ptr<const internal::ClassSource> source, std::vector<std::string> labels);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const internal::ClassSource> source_;
  std::shared_ptr<const std::vector<std::string>> labels_;
};

}  // namespace vit
