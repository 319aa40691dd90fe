#include "apps/vit/classes/class_options.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"
#include "vit/base/error.h"
#include "vit/checkpoint.h"
#include "vit/config.h"

namespace vit::app {
namespace {

void check_options(const ClassOptions& options) {
  if (!options.texts.are_given()) {
    if (options.templates.are_given()) fail_usage("--template requires --classes or --classes-file");
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

/// Throws Error that names both if the text tower is not the one that encoded the vectors.
void check_text_tower(const std::filesystem::path& vectors, const CommonOptions& common) {
  const std::string record = read_record(vectors);
  if (record.empty()) return;
  const RunModel made = parse_run_facts(record, vectors.string()).model;
  const TextOptions options = text_options(common);
  const auto tower =
      Checkpoint(model_path(common), {.architecture = options.architecture}).describe_text(options);
  const std::string found = tower ? tower->report.fingerprint : "no text tower";
  VIT_CHECK(found == made.fingerprint, (Where{"classes", ErrorKind::mismatch}), vectors.string(),
            ": holds vectors of texts of the model ", printable(made.model), " (fingerprint ",
            made.fingerprint, "), which cannot be compared with images of ",
            printable(model_path(common).string()), " (", found,
            "); encode the texts with this model, or leave out --model");
}

std::optional<Classifier> load_classifier(const CommonOptions& common, const ClassOptions& options) {
  if (options.are_vectors()) {
    ClassVectors classes = load_class_vectors(options.texts.file);
    check_text_tower(options.texts.file, common);
    const TextScore score = Checkpoint(model_path(common), common.model_options).text_score();
    return Classifier::of_texts(load_model(common), std::move(classes), score);
  }
  if (options.texts.are_given()) return encode_texts_as_classes(common, options);
  std::shared_ptr<const Model> model = load_model(common);
  if (!options.classifier.empty())
    return Classifier::of_head(std::move(model), load_head(options.classifier));
  if (!model->config().has_classes())
    fail_usage(
        "this model has no classes",
        model->config().head.logits == LogitKind::joint_space
            ? ": its head is the projection of a tower that was trained with texts"
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

void take_class_record(const ClassOptions& options, CommonOptions& common) {
  check_options(options);
  if (options.are_vectors() && !options.texts.file.empty())
    take_record(read_record(options.texts.file), options.texts.file.string(), common);
  if (!options.classifier.empty())
    take_record(read_record(options.classifier), options.classifier.string(), common);
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
  if (options.labels.empty() && !common.quiet) {
    for (const std::string& note : classifier->model()->report().notes) {
      if (note.starts_with("id2label ")) print_failure("", note);  // names of classes that do not fit them
    }
  }
  Labels labels(classifier->model()->config(), options.labels);
  if (!labels.names().empty()) classifier = classifier->with_labels(labels.names());
  return Classes{.kind = kind, .classifier = std::move(*classifier), .labels = std::move(labels)};
}

namespace {

constexpr std::size_t kDefaultTop = 5;
constexpr std::size_t kMaxTop = std::size_t{1} << 20;

std::optional<ClassActivation> parse_activation(const std::string& name) {
  if (name == "auto") return std::nullopt;
  if (name == "softmax") return ClassActivation::softmax;
  if (name == "sigmoid") return ClassActivation::sigmoid;
  if (name == "none") return ClassActivation::none;
  fail_value("one of auto, softmax, sigmoid, none", name);
}

Threshold parse_threshold(const std::string& entry) {
  const std::size_t equals = entry.rfind('=');
  if (equals == 0) fail_value("P or CATEGORY=P", entry);
  const bool has_category = equals != entry.npos;
  const double value = parse_real(has_category ? entry.substr(equals + 1) : entry, 0.0, 1.0);
  return {.category = has_category ? entry.substr(0, equals) : "", .value = static_cast<float>(value)};
}

std::string listed(const std::vector<std::string>& categories) {
  std::map<std::string_view, bool> seen;
  std::string out;
  for (const std::string& category : categories) {
    if (seen.emplace(category, true).second) out += (out.empty() ? "" : ", ") + printable(category);
  }
  return out;
}

void check_threshold(const Threshold& threshold, const std::vector<std::string>& categories) {
  if (threshold.category.empty()) return;
  const std::string name = printable(threshold.category);
  if (categories.empty()) fail_usage("--threshold ", name, "=P: the labels have no categories; give only P");
  if (std::ranges::find(categories, threshold.category) == categories.end())
    fail_usage("--threshold ", name, "=P: no class has this category; categories: ", listed(categories));
}

/// A threshold for each class. Categories without a threshold are left out unless there is a general P.
std::vector<float> thresholds_of(const std::vector<Threshold>& given, const Labels& labels) {
  const std::vector<std::string>& categories = labels.categories();
  std::map<std::string_view, float> by_category;
  for (const Threshold& threshold : given) {
    check_threshold(threshold, categories);
    if (!by_category.emplace(threshold.category, threshold.value).second)
      fail_usage("--threshold: given twice", threshold.category.empty() ? "" : " for the category ",
                 printable(threshold.category));
  }
  constexpr float kNever = std::numeric_limits<float>::infinity();
  const auto find = [&](std::string_view category, float otherwise) {
    const auto found = by_category.find(category);
    return found == by_category.end() ? otherwise : found->second;
  };
  std::vector<float> out(labels.size(), find("", kNever));
  for (std::size_t i = 0; i < categories.size(); ++i) out[i] = find(categories[i], out[i]);
  return out;
}

}  // namespace

void add_selection_options(std::vector<Option>& list, SelectionOptions& options) {
  list.push_back({.name = "--top",
                  .type_name = "K",
                  .help = "Classes for each image, best first",
                  .target = parsed_target(
                      options.top, [](const std::string& value) { return parse_integer(value, 1, kMaxTop); },
                      std::to_string(kDefaultTop))});
  list.push_back({.name = "--threshold",
                  .type_name = "P",
                  .help = "All classes of probability P or more instead of the best K; CATEGORY=P for one "
                          "category of --labels",
                  .target = list_target(options.thresholds, parse_threshold),
                  .occurs = Occurs::repeated});
  list.push_back(
      {.name = "--activation",
       .type_name = "NAME",
       .help = "Probabilities: softmax over all classes, sigmoid of each, none (regression values), or "
               "auto (as the model was trained)",
       .target = offering(parsed_target(options.activation, parse_activation, "auto"),
                          {"auto", "softmax", "sigmoid", "none"})});
}

ClassSelection make_selection(const SelectionOptions& options, const Classes& classes) {
  ClassSelection selection(options.top.value_or(kDefaultTop));
  selection.activation = options.activation.value_or(classes.classifier.activation());
  if (classes.kind == ClassKind::head && selection.activation != ClassActivation::softmax)
    fail_usage("--activation: the classes of --classifier are mutually exclusive and use a softmax");
  if (options.thresholds.empty()) return selection;
  if (selection.activation == ClassActivation::none)
    fail_usage("--threshold P is a probability; this model outputs regression values");
  if (options.top) fail_usage("--top and --threshold: give only one of them");
  selection.thresholds = thresholds_of(options.thresholds, classes.labels);
  return selection;
}

}  // namespace vit::app
