// Classifiers of the C interface: a value for each class, from the model, a fitted head or texts.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/checkpoint.h"
#include "vit/config.h"

using namespace vit;
using namespace vit::internal;

namespace {

/// A new handle for the result of make(model).
template <typename Make>
vit_status make_classifier(const vit_model* model, vit_classifier** classifier, const Make& make) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_classifier*& out = object_at(classifier, "classifier");
    out = new vit_classifier{make(from)};
  });
}

}  // namespace

vit_status vit_classifier_create(const vit_model* model, vit_classifier** classifier) {
  return make_classifier(model, classifier,
                         [](const vit_model& from) { return Classifier::of_model(from.model); });
}

vit_status vit_classifier_load_head(const vit_model* model, const char* path, vit_classifier** classifier) {
  return make_classifier(model, classifier, [&](const vit_model& from) {
    return Classifier::of_head(from.model, load_head(&object_at(path, "path")));
  });
}

vit_status vit_classifier_create_zero_shot(const vit_model* model, vit_text_encoder* encoder,
                                           const char* const* names, size_t num_names,
                                           const char* const* templates, size_t num_templates,
                                           vit_classifier** classifier) {
  return make_classifier(model, classifier, [&](const vit_model& from) {
    return Classifier::of_texts(from.model, object_at(encoder, "encoder").encoder,
                                strings_of(names, num_names, "names"),
                                strings_of(templates, num_templates, "templates"));
  });
}

vit_status vit_classifier_load_vectors(const vit_model* model, const char* path,
                                       vit_classifier** classifier) {
  return make_classifier(model, classifier, [&](const vit_model& from) {
    ClassVectors classes = load_class_vectors(&object_at(path, "path"));
    return Classifier::of_texts(from.model, std::move(classes),
                                vit::Checkpoint(from.path, from.options).text_score());
  });
}

vit_status vit_classifier_save_vectors(const vit_classifier* classifier, const char* path) {
  return guarded([&] {
    const ClassVectors* const classes = object_at(classifier, "classifier").classifier.class_vectors();
    VIT_CHECK(classes != nullptr, kCall, "the classes of this classifier are not texts");
    save_class_vectors(*classes, &object_at(path, "path"));
  });
}

void vit_classifier_free(vit_classifier* classifier) {
  delete classifier;
}

size_t vit_classifier_size(const vit_classifier* classifier) {
  return classifier == nullptr ? 0 : classifier->classifier.size();
}

vit_status vit_classifier_label(const vit_classifier* classifier, size_t index, const char** label) {
  return guarded([&] {
    const std::span<const std::string> labels = object_at(classifier, "classifier").classifier.labels();
    VIT_CHECK(index < labels.size(), kCall, "there are ", labels.size(), " classes, but no index ", index);
    object_at(label, "label") = labels[index].c_str();
  });
}

vit_status vit_classifier_run(const vit_classifier* classifier, vit_session* session, const vit_input* inputs,
                              size_t num_inputs, vit_results* results) {
  return guarded([&] {
    const Classifier& classes = object_at(classifier, "classifier").classifier;
    Session& known = object_at(session, "session").session;
    vit_results& out = object_at(results, "results");
    out.clear();
    VIT_CHECK(&known.model() == classes.model().get(), kCall,
              "the session and the classifier were made from different models");
    std::vector<float> values(classes.size());
    return run_inputs(known, InputList(inputs, num_inputs, known.model().config().image.num_channels),
                      classes.request(), out, [&](std::size_t index, const ImageOutputs& outputs) {
                        classes.values(outputs, values);
                        std::string defect = defect_of(values, "[Session] the logits are");
                        if (defect.empty())
                          out.column({VIT_LOGITS}, VIT_FLOAT32).put(index, values.data(), {values.size()});
                        return defect;
                      });
  });
}

vit_status vit_classifier_top(const vit_classifier* classifier, const vit_results* results, size_t index,
                              size_t top, vit_prediction* predictions, size_t* count) {
  return guarded([&] {
    const Classifier& classes = object_at(classifier, "classifier").classifier;
    std::size_t& num_written = object_at(count, "count");
    const std::span<vit_prediction> out = span_of(predictions, top, "predictions");
    vit_array logits{};
    const vit_status status = vit_results_one(results, index, VIT_LOGITS, 0, &logits);
    if (status != VIT_OK) return status;
    VIT_CHECK(logits.shape[0] == classes.size(), kCall, "results of ", logits.shape[0],
              " classes for a classifier of ", classes.size());
    const std::span<const float> values(static_cast<const float*>(logits.data), logits.shape[0]);
    num_written = 0;
    for (const Prediction& found : classes.predict(values, std::min(top, values.size()))) {
      out[num_written++] = {.index = found.index,
                            .label = classes.labels()[found.index].c_str(),
                            .probability = found.probability,
                            .logit = found.logit};
    }
    return vit_status{VIT_OK};
  });
}
