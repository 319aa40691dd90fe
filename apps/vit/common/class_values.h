// Where a value for each class comes from: the classifier of the model, or a head that `vit fit` made.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "apps/vit/command_line.h"
#include "apps/vit/common/labels.h"
#include "vit/fit.h"
#include "vit/model.h"

namespace vit::app {

/// --labels and --classifier.
struct ClassOptions {
  std::filesystem::path labels;
  std::filesystem::path classifier;
};
void add_class_options(std::vector<Option>& list, ClassOptions& options);

class ClassValues {
 public:
  /// Throws UsageError if the model has no classifier and none is given, or the options contradict each
  /// other, and Error for files that do not fit the model.
  ClassValues(const Model& model, const ClassOptions& options);

  const Labels& labels() const noexcept { return labels_; }
  /// What to ask the model for.
  const Request& request() const noexcept { return request_; }
  /// A value for each class of one image (classes); valid until the next call.
  std::span<const float> of(const ImageOutputs& outputs);

 private:
  std::optional<ClassifierHead> head_;
  Request request_;
  Labels labels_;
  std::vector<float> values_;
};

}  // namespace vit::app
