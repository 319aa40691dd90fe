// Classifiers of the C interface: a value for each class, from the model, a fitted head or texts.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"

namespace vit::internal {
namespace {

using Handle = std::unique_ptr<vit_classifier>;

Handle make_zero_shot(const vit_model& model, ZeroShotClassifier classifier) {
  auto out = std::make_unique<vit_classifier>();
  out->model = model.model;
  out->labels = classifier.classes().names;
  out->zero_shot.emplace(std::move(classifier));
  return out;
}

/// How images are compared with texts; read from the checkpoint, whose text tower is not loaded.
TextScore score_of(const vit_model& model) {
  constexpr Where kWhere = kCall.with(ErrorKind::mismatch);
  const std::optional<TextDescription> text =
      describe_text_tower(model.path, {.architecture = model.architecture});
  VIT_CHECK(text && text->config.score, kWhere, model.path,
            " has no text tower, so its images cannot be compared with texts");
  return *text->config.score;
}

Request request_of(const vit_classifier& classifier) {
  if (classifier.head) return classifier.head->request(*classifier.model);
  if (classifier.zero_shot) return embedding_request(classifier.model->config());
  return {.logits = true};
}

/// A value for each class, in `memory` unless they are the model's own.
std::span<const float> values_of(const vit_classifier& classifier, const ImageOutputs& outputs,
                                 std::vector<float>& memory) {
  if (!classifier.head && !classifier.zero_shot) return outputs.logits();
  memory.resize(classifier.labels.size());
  if (classifier.zero_shot) {
    classifier.zero_shot->compare(embedding_of(outputs, classifier.model->config()), memory);
  } else {
    classifier.head->apply(classifier.head->select(outputs), memory);
  }
  return memory;
}

std::vector<Prediction> predictions_of(const vit_classifier& classifier, std::span<const float> values,
                                       std::size_t top) {
  const bool is_own = !classifier.head && !classifier.zero_shot;
  const ClassActivation activation =
      is_own ? class_activation(classifier.model->config()) : ClassActivation::softmax;
  std::vector<Prediction> out = top_predictions(values, top, {}, activation);
  if (!classifier.zero_shot) return out;
  std::vector<float> probabilities(values.size());
  classifier.zero_shot->probabilities(values, probabilities);
  for (Prediction& prediction : out) prediction.probability = probabilities[prediction.index];
  return out;
}

}  // namespace
}  // namespace vit::internal

using namespace vit;
using namespace vit::internal;

vit_status vit_classifier_create(const vit_model* model, vit_classifier** classifier) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_classifier*& out = object_at(classifier, "classifier");
    VIT_CHECK(!from.labels.empty(), kCall.with(ErrorKind::mismatch), from.path,
              " has no classifier; it gives features only");
    out = new vit_classifier{
        .model = from.model, .labels = from.labels, .head = std::nullopt, .zero_shot = std::nullopt};
  });
}

vit_status vit_classifier_load_head(const vit_model* model, const char* path, vit_classifier** classifier) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_classifier*& out = object_at(classifier, "classifier");
    ClassifierHead head = load_head(&object_at(path, "path"));
    static_cast<void>(head.request(*from.model));  // throws if the head belongs to another model
    std::vector<std::string> labels = head.labels;
    out = new vit_classifier{
        .model = from.model, .labels = std::move(labels), .head = std::move(head), .zero_shot = std::nullopt};
  });
}

vit_status vit_classifier_create_zero_shot(const vit_model* model, vit_text_encoder* encoder,
                                           const char* const* names, size_t num_names,
                                           const char* const* templates, size_t num_templates,
                                           vit_classifier** classifier) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    TextEncoder& texts = object_at(encoder, "encoder").encoder;
    vit_classifier*& out = object_at(classifier, "classifier");
    ZeroShotClassifier found(texts, strings_of(names, num_names, "names"),
                             strings_of(templates, num_templates, "templates"));
    out = make_zero_shot(from, std::move(found)).release();
  });
}

vit_status vit_classifier_load_vectors(const vit_model* model, const char* path,
                                       vit_classifier** classifier) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_classifier*& out = object_at(classifier, "classifier");
    ClassVectors classes = load_class_vectors(&object_at(path, "path"));
    out = make_zero_shot(from, ZeroShotClassifier(std::move(classes), score_of(from))).release();
  });
}

vit_status vit_classifier_save_vectors(const vit_classifier* classifier, const char* path) {
  return guarded([&] {
    const vit_classifier& from = object_at(classifier, "classifier");
    VIT_CHECK(from.zero_shot, kCall, "the classes of this classifier are no texts");
    save_class_vectors(from.zero_shot->classes(), &object_at(path, "path"));
  });
}

void vit_classifier_free(vit_classifier* classifier) {
  delete classifier;
}

size_t vit_classifier_size(const vit_classifier* classifier) {
  return classifier == nullptr ? 0 : classifier->labels.size();
}

vit_status vit_classifier_label(const vit_classifier* classifier, size_t index, const char** label) {
  return guarded([&] {
    const std::vector<std::string>& labels = object_at(classifier, "classifier").labels;
    VIT_CHECK(index < labels.size(), kCall, "there are ", labels.size(), " classes, and none of index ",
              index);
    object_at(label, "label") = labels[index].c_str();
  });
}

vit_status vit_classifier_run(const vit_classifier* classifier, vit_session* session, const vit_input* inputs,
                              size_t num_inputs, vit_results* results) {
  return guarded([&] {
    const vit_classifier& classes = object_at(classifier, "classifier");
    Session& known = object_at(session, "session").session;
    vit_results& out = object_at(results, "results");
    out.clear();
    VIT_CHECK(&known.model() == classes.model.get(), kCall,
              "the session and the classifier were made from different models");
    std::vector<float> memory;
    return run_inputs(known, InputList(inputs, num_inputs), request_of(classes), out,
                      [&](std::size_t index, const ImageOutputs& outputs) {
                        const std::span<const float> values = values_of(classes, outputs, memory);
                        std::string defect = defect_of(values);
                        if (defect.empty())
                          out.column({VIT_LOGITS}, VIT_FLOAT32).put(index, values.data(), {values.size()});
                        return defect;
                      });
  });
}

vit_status vit_classifier_top(const vit_classifier* classifier, const vit_results* results, size_t index,
                              size_t top, vit_prediction* predictions, size_t* count) {
  return guarded([&] {
    const vit_classifier& classes = object_at(classifier, "classifier");
    std::size_t& num_written = object_at(count, "count");
    const std::span<vit_prediction> out = span_of(predictions, top, "predictions");
    vit_array logits{};
    const vit_status status = vit_results_one(results, index, VIT_LOGITS, 0, &logits);
    if (status != VIT_OK) return status;
    VIT_CHECK(logits.shape[0] == classes.labels.size(), kCall, "results of ", logits.shape[0],
              " classes for a classifier of ", classes.labels.size());
    const std::span<const float> values(static_cast<const float*>(logits.data), logits.shape[0]);
    num_written = 0;
    for (const Prediction& found : predictions_of(classes, values, std::min(top, values.size()))) {
      out[num_written++] = {.index = found.index,
                            .label = classes.labels[found.index].c_str(),
                            .probability = found.probability,
                            .logit = found.logit};
    }
    return vit_status{VIT_OK};
  });
}
