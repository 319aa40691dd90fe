#include "apps/vit/classes/class_values.h"

#include <utility>

#include "apps/vit/options/option_values.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/usage_error.h"

namespace vit::app {
namespace {

std::optional<ClassifierHead> read_head(const ClassOptions& options) {
  if (options.classifier.empty()) return std::nullopt;
  if (!options.labels.empty()) fail_usage("--labels: the head of --classifier has labels of its own");
  return load_head(options.classifier);
}

Labels labels_of(const Model& model, const std::optional<ClassifierHead>& head,
                 const std::optional<ZeroShotClassifier>& zero_shot, const ClassOptions& options) {
  if (head) return Labels(head->labels);
  if (zero_shot) return Labels(zero_shot->classes().names);
  if (options.texts.are_given()) return Labels(std::vector<std::string>{});  // ended by an interrupt
  if (model.config().num_classes == 0)
    fail_usage(
        "this model has no classifier; give one with --classifier (vit fit makes them), name --classes where "
        "it has a text tower, or try vit embed");
  return Labels(model.config(), options.labels);
}

/// The model, with the classes that it is to tell where the options give texts of them.
ZeroShotModel load(const CommonOptions& common, const ClassOptions& options) {
  check_class_texts(options.texts);
  check_has_weights(common);
  if (!options.texts.are_given()) return {.model = load_model(common), .classifier = std::nullopt};
  if (!options.labels.empty()) fail_usage("--labels: the classes of --classes are called by their names");
  if (!options.classifier.empty()) fail_usage("--classifier and --classes: give one of them");
  return load_zero_shot(common, options.texts);
}

Request request_of(const Model& model, const std::optional<ClassifierHead>& head, bool has_texts) {
  if (head) return head->request(model);
  return has_texts ? embedding_request(model.config()) : Request{.logits = true};
}

}  // namespace

void add_class_options(std::vector<Option>& list, ClassOptions& options) {
  list.push_back(labels_option(options.labels));
  list.push_back({.name = "--classifier",
                  .type_name = "HEAD",
                  .help = "Classes that vit fit has learned for this model, instead of its own",
                  .target = text_target(options.classifier)});
  add_class_text_options(list, options.texts);
}

ClassValues::ClassValues(const CommonOptions& common, const ClassOptions& options)
    : ClassValues(load(common, options), options) {}

ClassValues::ClassValues(ZeroShotModel zero_shot, const ClassOptions& options)
    : model_(std::move(zero_shot.model)),
      zero_shot_(std::move(zero_shot.classifier)),
      head_(read_head(options)),
      request_(request_of(*model_, head_, zero_shot_.has_value())),
      labels_(labels_of(*model_, head_, zero_shot_, options)) {
  if (head_ || zero_shot_) values_.resize(labels_.size());
}

std::span<const float> ClassValues::of(const ImageOutputs& outputs) {
  if (zero_shot_) {
    zero_shot_->compare(embedding_of(outputs, model_->config()), values_);
    return values_;
  }
  if (!head_) return outputs.logits();
  head_->apply(head_->select(outputs), values_);
  return values_;
}

ClassActivation ClassValues::activation() const {
  if (zero_shot_) return zero_shot_->score().kind;
  return head_ ? ClassActivation::softmax : class_activation(model_->config());
}

}  // namespace vit::app
