// Classes for images: those of the model, of a fitted head, or texts.
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
#include "vit/fit.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit {

namespace internal {
class ClassSource;
}

/// A class and how probable it is.
struct Prediction {
  std::size_t index;  // class
  std::string label;  // name, or the number where there is none
  float probability;  // softmax over all classes, or sigmoid of this one; of a regression, the logit
  float logit;        // as the model gives it
};

/// The `top` most probable classes of a row of logits (classes), best first; equal logits in index order. A
/// class without a name in `labels` is called by its number.
VIT_API std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top,
                                                std::span<const std::string> labels = {},
                                                ClassActivation activation = ClassActivation::softmax);

/// The classes whose probability is at least their threshold, best first; equal logits in index order.
/// `thresholds` (classes): an infinite one leaves its class out. Throws Error for another number of them.
VIT_API std::vector<Prediction> predictions_above(std::span<const float> logits,
                                                  std::span<const float> thresholds,
                                                  std::span<const std::string> labels = {},
                                                  ClassActivation activation = ClassActivation::softmax);

/// Which classes of an image are predicted: the most probable ones, or all from a threshold on.
struct Selection {
  Selection(std::size_t num_classes = 5) : top(num_classes) {}
  /// One threshold for each class; an infinite one leaves its class out.
  static Selection above(std::vector<float> thresholds) {
    Selection selection;
    selection.thresholds = std::move(thresholds);
    return selection;
  }

  std::size_t top;                              // where there are no thresholds
  std::vector<float> thresholds{};              // (classes), or none
  std::optional<ClassActivation> activation{};  // nothing = the classifier's
};

/// Classes for the images of one model. Immutable; share it between threads, each with its own Session.
///   vit::Classifier("model").classify("photo.jpg");             // the classes of the checkpoint
///   vit::Classifier::of_head(model, vit::load_head("pets.safetensors"));
///   vit::Classifier::of_texts(vit::ImageAndText::load("siglip2"), {"a cat", "a dog"});
class VIT_API Classifier {
 public:
  /// The classes of the checkpoint at `path`, a folder or weight file. Throws Error as Model::load() and
  /// of_model() do.
  explicit Classifier(const std::filesystem::path& path, const ModelOptions& options = {});
  /// The classes that the checkpoint was trained for. Throws Error (mismatch) if it has no classifier.
  static Classifier of_model(std::shared_ptr<const Model> model);
  /// Those of a head that was fitted on features of this model. Throws Error if it was fitted on another's.
  static Classifier of_head(std::shared_ptr<const Model> model, ClassifierHead head);
  /// Texts, whose vectors are ready, and how images are compared with them. Throws Error if the vectors are
  /// not (n, E) with a name each, or if there are none.
  static Classifier of_texts(std::shared_ptr<const Model> model, ClassVectors classes, TextScore score);
  /// Texts: encode_classes() and the score of the encoder's tower. Throws Error if that tower was published
  /// without an image tower, and so without a score.
  static Classifier of_texts(std::shared_ptr<const Model> model, TextEncoder& encoder,
                             std::vector<std::string> classes, std::span<const std::string> templates = {});
  /// Texts for the images of both towers' checkpoint.
  static Classifier of_texts(const ImageAndText& towers, std::vector<std::string> classes,
                             std::span<const std::string> templates = {});

  const std::shared_ptr<const Model>& model() const noexcept { return model_; }  // whose images it takes
  std::size_t size() const noexcept { return labels_->size(); }                  // classes
  std::span<const std::string> labels() const noexcept {
    return *labels_;
  }                                                    // names; numbers where there are none
  ClassActivation activation() const noexcept;         // from values to probabilities
  const Request& request() const noexcept;             // what a Session is to be asked for
  const ClassVectors* class_vectors() const noexcept;  // of texts; null for other classes
  /// These classes by other names. Throws Error for another number of them.
  Classifier with_labels(std::vector<std::string> labels) const;

  /// A value for each class, of what request() gave: logits, values of the head, or scaled cosines. Throws
  /// Error if `values` has another size.
  void values(const ImageOutputs& outputs, std::span<float> values) const;
  /// The classes that values() selects, best first; equal ones in their order.
  std::vector<Prediction> predict(std::span<const float> values, const Selection& selection = {}) const;
  /// The classes of an image of which request() was asked.
  std::vector<Prediction> predict(const ImageOutputs& outputs, const Selection& selection = {}) const;
  /// The classes of an image, run by a session over the same model.
  std::vector<Prediction> classify(Session& session, const ImageSource& image,
                                   const Selection& selection = {}) const;
  /// The classes of one image, run by all cores; of many, a Session of the caller saves making its memory
  /// anew.
  std::vector<Prediction> classify(const ImageSource& image, const Selection& selection = {}) const;

 private:
  Classifier(std::shared_ptr<const Model> model, std::shared_ptr<const internal::ClassSource> source,
             std::vector<std::string> labels);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const internal::ClassSource> source_;
  std::shared_ptr<const std::vector<std::string>> labels_;
};

}  // namespace vit
