// Where a value for each class comes from: the classifier of the model, a head that `vit fit` made, or texts
// with which images are compared.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/vit/classes/class_texts.h"
#include "apps/vit/classes/labels.h"
#include "apps/vit/command_line.h"
#include "vit/fit.h"
#include "vit/model.h"
#include "vit/session.h"

namespace vit::app {

/// --labels, --classifier, --classes and what goes with it.
struct ClassOptions {
  std::filesystem::path labels;
  std::filesystem::path classifier;
  ClassTextOptions texts;

  bool are_given() const { return !labels.empty() || !classifier.empty() || texts.are_given(); }
  /// All that are to be read.
  std::vector<std::filesystem::path> files() const {
    return {labels, classifier, texts.file, texts.templates.file, texts.tower.tokenizer};
  }
};
void add_class_options(std::vector<Option>& list, ClassOptions& options);

class ClassValues {
 public:
  /// Loads the model and what the options ask for. Throws UsageError if the model has no classifier and none
  /// is given, or the options contradict each other, and Error for files that do not fit the model. Ends
  /// early after an interrupt: there are no values then.
  ClassValues(const CommonOptions& common, const ClassOptions& options);

  const std::shared_ptr<const Model>& model() const noexcept { return model_; }
  const Labels& labels() const noexcept { return labels_; }
  /// What to ask the model for.
  const Request& request() const noexcept { return request_; }
  /// A value for each class of one image (classes); valid until the next call.
  std::span<const float> of(const ImageOutputs& outputs);
  /// What makes probabilities of the values.
  ClassActivation activation() const;
  /// Whether --classifier tells the classes.
  bool has_head() const noexcept { return head_.has_value(); }

 private:
  ClassValues(ZeroShotModel zero_shot, const ClassOptions& options);

  std::shared_ptr<const Model> model_;
  std::optional<ZeroShotClassifier> zero_shot_;
  std::optional<ClassifierHead> head_;
  Request request_;
  Labels labels_;
  std::vector<float> values_;
};

}  // namespace vit::app
