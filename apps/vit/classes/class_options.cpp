#include "apps/vit/classes/class_options.h"

#include <utility>

#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/run/interrupt.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

void check_options(const ClassOptions& options) {
  if (!options.texts.are_given()) {
    if (options.templates.are_given()) fail_usage("--template goes with --classes or --classes-file");
    if (!options.classifier.empty() && !options.labels.empty())
      fail_usage("--labels: the head of --classifier has its own labels");
    return;
  }
  if (!options.texts.list.empty() && !options.texts.file.empty())
    fail_usage("--classes and --classes-file: give only one of them");
  if (options.are_vectors() && options.templates.are_given())
    fail_usage("--template: the vectors of ", options.texts.file.string(),
               " are already encoded; templates cannot be applied");
  if (!options.labels.empty()) fail_usage("--labels: with --classes, classes have their own names");
  if (!options.classifier.empty()) fail_usage("--classifier and --classes: give only one of them");
}

/// Encodes the texts with the model; nothing after an interrupt.
std::optional<Classifier> encode_texts_as_classes(const CommonOptions& common, const ClassOptions& options) {
  const std::vector<std::string> names = read_class_names(options.texts);
  std::vector<std::string> templates = read_templates(options.templates);
  if (templates.empty()) templates.emplace_back(kDefaultTemplate);
  ImageAndText towers = load_both_towers(common);
  const std::optional<TextScore> score = towers.text->config().score;
  VIT_CHECK(score, "classes", model_path(common).string(),
            ": has only a text tower; images cannot be compared with texts");
  TextEncoder encoder(std::move(towers.text), {.threads = common.session.threads});
  hold_interrupts();  // an interrupt stops the encoding of many classes early
  std::optional<ClassVectors> classes = encode_classes(encoder, names, templates, common);
  if (!classes) return std::nullopt;
  return Classifier::of_texts(std::move(towers.image), std::move(*classes), *score);
}

std::optional<Classifier> load_classifier(const CommonOptions& common, const ClassOptions& options) {
  if (options.are_vectors()) {
    ClassVectors classes = load_class_vectors(options.texts.file);
    const TextScore score = read_text_score(model_path(common), common.model_options);
    return Classifier::of_texts(load_model(common), std::move(classes), score);
  }
  if (options.texts.are_given()) return encode_texts_as_classes(common, options);
  std::shared_ptr<const Model> model = load_model(common);
  if (!options.classifier.empty())
    return Classifier::of_head(std::move(model), load_head(options.classifier));
  if (!model->config().has_classes())
    fail_usage(
        "this model has no classes",
        model->config().head_projects ? ": its head is the projection of a tower that was trained with texts"
                                      : "",
        "; give some with --classifier (vit fit makes them), name --classes where it has a text tower, or "
        "try vit embed");
  return Classifier::of_model(std::move(model));
}

}  // namespace

void add_class_options(std::vector<Option>& list, ClassOptions& options) {
  list.push_back(labels_option(options.labels));
  list.push_back({.name = "--classifier",
                  .type_name = "HEAD",
                  .help = "Use the classes that vit fit learned for this model instead of its own",
                  .target = text_target(options.classifier)});
  list.push_back({.name = "--classes",
                  .type_name = "LIST",
                  .help = "Classes in your own words, separated by commas, for models with a text tower",
                  .target = text_target(options.texts.list)});
  list.push_back(
      {.name = "--classes-file",
       .type_name = "FILE",
       .help = "Classes in the formats of --labels, or .safetensors: vectors from vit embed --text-file "
               "--template",
       .target = text_target(options.texts.file)});
  add_template_options(list, options.templates);
}

std::optional<Classes> load_classes(const CommonOptions& common, const ClassOptions& options) {
  check_options(options);
  check_has_weights(common);
  std::optional<Classifier> classifier = load_classifier(common, options);
  if (!classifier) return std::nullopt;
  const ClassKind kind = options.texts.are_given()     ? ClassKind::texts
                         : !options.classifier.empty() ? ClassKind::head
                                                       : ClassKind::own;
  if (kind != ClassKind::own) {
    const std::span<const std::string> names = classifier->labels();
    return Classes{.kind = kind, .classifier = *classifier, .labels = Labels({names.begin(), names.end()})};
  }
  Labels labels(classifier->model()->config(), options.labels);
  if (!labels.names().empty()) classifier = classifier->with_labels(labels.names());
  return Classes{.kind = kind, .classifier = std::move(*classifier), .labels = std::move(labels)};
}

}  // namespace vit::app
