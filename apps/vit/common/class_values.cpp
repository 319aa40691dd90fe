#include "apps/vit/common/class_values.h"

#include <utility>

#include "apps/vit/common/option_values.h"
#include "apps/vit/common/options.h"
#include "apps/vit/common/usage_error.h"

namespace vit::app {
namespace {

std::optional<ClassifierHead> read_head(const ClassOptions& options) {
  if (options.classifier.empty()) return std::nullopt;
  if (!options.labels.empty()) fail_usage("--labels: the head of --classifier has labels of its own");
  return load_head(options.classifier);
}

Labels labels_of(const Model& model, const std::optional<ClassifierHead>& head, const ClassOptions& options) {
  if (head) return Labels(head->labels);
  if (model.config().num_classes == 0)
    fail_usage(
        "this model has no classifier; give one with --classifier (vit fit makes them), or try vit embed");
  return Labels(model.config(), options.labels);
}

}  // namespace

void add_class_options(std::vector<Option>& list, ClassOptions& options) {
  list.push_back(labels_option(options.labels));
  list.push_back({.name = "--classifier",
                  .type_name = "HEAD",
                  .help = "Classes that vit fit has learned for this model, instead of its own",
                  .target = text_target(options.classifier)});
}

ClassValues::ClassValues(const Model& model, const ClassOptions& options)
    : head_(read_head(options)),
      request_(head_ ? head_->request(model) : Request{.logits = true}),
      labels_(labels_of(model, head_, options)) {
  if (head_) values_.resize(head_->labels.size());
}

std::span<const float> ClassValues::of(const ImageOutputs& outputs) {
  if (!head_) return outputs.logits();
  head_->apply(head_->select(outputs), values_);
  return values_;
}

}  // namespace vit::app
