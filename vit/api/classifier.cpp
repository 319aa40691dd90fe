#include "vit/classifier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/api/class_vectors.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/head/probabilities.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"Classifier", ErrorKind::argument};

Prediction named(const RankedClass& ranked, std::span<const std::string> labels) {
  return {.index = ranked.index,
          .label = ranked.index < labels.size() ? labels[ranked.index] : std::to_string(ranked.index),
          .probability = ranked.probability,
          .logit = ranked.logit};
}

}  // namespace

std::vector<Prediction> ClassSelection::of(std::span<const float> logits, std::span<const std::string> labels,
                                           ClassActivation otherwise) const {
  const bool has_limits = !thresholds.empty();
  VIT_CHECK(!has_limits || thresholds.size() == logits.size(), kWhere, thresholds.size(), " thresholds for ",
            logits.size(), " classes");
  VIT_CHECK(std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }), kWhere,
            "values of classes that are not finite (NaN or infinity)");
  std::vector<Prediction> predictions;
  for (const RankedClass& ranked :
       top_classes(logits, has_limits ? logits.size() : top, activation.value_or(otherwise))) {
    if (has_limits && !(ranked.probability >= thresholds[ranked.index])) continue;
    predictions.push_back(named(ranked, labels));
  }
  return predictions;
}

// --------------------------------------------------------------------------------------- kinds of classes

/// The source of a value for each class.
class internal::ClassSource {
 public:
  ClassSource(Request request, ClassActivation activation)
      : request_(std::move(request)), activation_(activation) {}
  virtual ~ClassSource() = default;

  const Request& request() const noexcept { return request_; }
  ClassActivation activation() const noexcept { return activation_; }
  virtual void values(const ImageOutputs& outputs, std::span<float> values) const = 0;
  virtual const ClassVectors* class_vectors() const noexcept { return nullptr; }

 private:
  Request request_;
  ClassActivation activation_;
};

namespace {

class ModelClasses : public ClassSource {
 public:
  explicit ModelClasses(const ModelConfig& config) : ClassSource(Output::logits, class_activation(config)) {}
  void values(const ImageOutputs& outputs, std::span<float> values) const override {
    std::ranges::copy(outputs.logits(), values.begin());
  }
};

class HeadClasses : public ClassSource {
 public:
  HeadClasses(Output features, ClassifierHead head)
      : ClassSource(features, ClassActivation::softmax), features_(features), head_(std::move(head)) {}
  void values(const ImageOutputs& outputs, std::span<float> values) const override {
    head_.apply(outputs[features_].flat(), values);
  }

 private:
  Output features_;
  ClassifierHead head_;
};

class TextClasses : public ClassSource {
 public:
  TextClasses(Output embedding, ClassVectors classes, TextScore score)
      : ClassSource(embedding, score.kind),
        embedding_(embedding),
        classes_(std::move(classes)),
        score_(score) {}

  void values(const ImageOutputs& outputs, std::span<float> values) const override {
    classes_.compare(outputs[embedding_].flat(), score_, values);
  }
  const ClassVectors* class_vectors() const noexcept override { return &classes_; }

 private:
  Output embedding_;
  ClassVectors classes_;
  TextScore score_;
};

std::vector<std::string> labels_of(const Model& model) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < model.config().head.num_classes; ++i) labels.push_back(model.label(i));
  return labels;
}

}  // namespace

// --------------------------------------------------------------------------------------------- Classifier

Classifier::Classifier(std::shared_ptr<const Model> model, std::shared_ptr<const ClassSource> source,
                       std::vector<std::string> labels)
    : model_(std::move(model)),
      source_(std::move(source)),
      labels_(std::make_shared<const std::vector<std::string>>(std::move(labels))) {}

Classifier::Classifier(const std::filesystem::path& path, const ModelOptions& options)
    : Classifier(of_model(Model::load(path, options))) {}

Classifier Classifier::of_model(std::shared_ptr<const Model> model) {
  VIT_CHECK(model != nullptr, kWhere, "no model");
  const ModelConfig& config = model->config();
  VIT_CHECK(config.has_classes(), kWhere.with(ErrorKind::mismatch), model->report().path.string(),
            config.head.logits == LogitKind::joint_space
                ? " has no classes: its head is the projection of a tower that was trained with texts; "
                  "Classifier::of_texts() and of_head() give it some"
                : " has no classifier; it gives features only");
  auto source = std::make_shared<const ModelClasses>(model->config());
  std::vector<std::string> labels = labels_of(*model);
  return {std::move(model), std::move(source), std::move(labels)};
}

Classifier Classifier::of_head(std::shared_ptr<const Model> model, ClassifierHead head) {
  VIT_CHECK(model != nullptr, kWhere, "no model");
  const Output features = head.output(*model);
  std::vector<std::string> labels = head.labels;
  auto source = std::make_shared<const HeadClasses>(features, std::move(head));
  return {std::move(model), std::move(source), std::move(labels)};
}

Classifier Classifier::of_texts(std::shared_ptr<const Model> model, ClassVectors classes, TextScore score) {
  VIT_CHECK(model != nullptr, kWhere, "no model");
  classes = normalized_classes(std::move(classes));
  const Output embedding = default_output(model->config());
  std::vector<std::string> labels = classes.names;
  auto source = std::make_shared<const TextClasses>(embedding, std::move(classes), score);
  return {std::move(model), std::move(source), std::move(labels)};
}

Classifier Classifier::of_texts(std::shared_ptr<const Model> model, TextEncoder& encoder,
                                std::vector<std::string> classes, std::span<const std::string> templates) {
  const TextTower& tower = encoder.tower();
  VIT_CHECK(tower.config().score, kWhere.with(ErrorKind::unsupported), tower.report().path.string(),
            ": only a text tower, without the scale for comparing its vectors with those of images");
  return of_texts(std::move(model), encode_classes(encoder, std::move(classes), templates),
                  *tower.config().score);
}

Classifier Classifier::of_texts(const ImageAndText& towers, std::vector<std::string> classes,
                                std::span<const std::string> templates) {
  TextEncoder encoder(towers.text);
  return of_texts(towers.image, encoder, std::move(classes), templates);
}

ClassActivation Classifier::activation() const noexcept {
  return source_->activation();
}

const Request& Classifier::request() const noexcept {
  return source_->request();
}

const ClassVectors* Classifier::class_vectors() const noexcept {
  return source_->class_vectors();
}

Classifier Classifier::with_labels(std::vector<std::string> labels) const {
  VIT_CHECK(labels.size() == size(), kWhere, labels.size(), " labels for ", size(), " classes");
  return {model_, source_, std::move(labels)};
}

void Classifier::values(const ImageOutputs& outputs, std::span<float> values) const {
  VIT_CHECK(values.size() == size(), kWhere, "room for ", values.size(), " values of ", size(), " classes");
  source_->values(outputs, values);
}

std::vector<Prediction> Classifier::predict(std::span<const float> values,
                                            const ClassSelection& selection) const {
  VIT_CHECK(values.size() == size(), kWhere, values.size(), " values of ", size(), " classes");
  return selection.of(values, labels(), activation());
}

std::vector<Prediction> Classifier::predict(const ImageOutputs& outputs,
                                            const ClassSelection& selection) const {
  std::vector<float> found(size());
  values(outputs, found);
  return predict(found, selection);
}

std::vector<Prediction> Classifier::classify(Session& session, const ImageSource& image,
                                             const ClassSelection& selection) const {
  VIT_CHECK(&session.model() == model_.get(), kWhere,
            "the session and the classifier were made from different models");
  Outputs outputs;
  session.run(image, request(), outputs);
  return predict(outputs[0], selection);
}

std::vector<Prediction> Classifier::classify(const ImageSource& image,
                                             const ClassSelection& selection) const {
  Session session(model_);
  return classify(session, image, selection);
}

}  // namespace vit
