// vit fit: learns custom classes on features of a frozen model.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/features.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/rings/fit/fit_options.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/fit.h"
#include "vit/rings/fit/memory.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "FOLDER contains one subfolder per label: pets/cat/1.jpg, pets/dog/1.jpg Methods:\n"
    "  logistic  multinomial logistic regression with an L2 penalty on standardized features: the optimum of "
    "scikit-learn's LogisticRegression; its strength C is the smallest of 10 values from 1e-4 to 1e4 with "
    "the best accuracy in stratified 5-fold cross-validation (LogisticRegressionCV)\n"
    "  knn       nearest neighbors by cosine, weighted with exp(cosine / 0.07) as in DINO\n"
    "  centroid  nearest centroid of standardized features\n"
    "Classes of pixels (--truth) are learned on vectors of length one, which are not standardized, by "
    "functions through the origin, with the smallest strength of 0.1, 1, ... 1e4 that has the best mean "
    "IoU.\n"
    "Labels with fewer than 5 images are missing from some folds; if no label has two, there is no "
    "cross-validation, and the strength is 1.\n"
    "Memory for n images, C features and K labels: 4 n C bytes for the features, plus for logistic 8 (30 (C "
    "+ 1) K + 2 C^2) bytes and 128 MiB, for knn 4 n C bytes, for centroid 12 K C bytes.\n"
    "Insufficient memory is reported before the images are read.\n"
    "Examples:\n"
    "  vit fit pets/ --output pets.safetensors\n"
    "  vit classify --classifier pets.safetensors photo.jpg\n"
    "  vit evaluate --classifier pets.safetensors pets_for_testing/\n"
    "  vit fit photo.jpg --truth strokes/ --size 518 --output leaf.safetensors\n"
    "  vit segment --classifier leaf.safetensors photos/ --output masks/\n"
    "  vit fit --model vit_base/ --method knn --k 10 --format json pets/ --output pets.safetensors";

constexpr Named<FitMethod> kMethods[]{
    {"logistic", FitMethod::logistic}, {"knn", FitMethod::knn}, {"centroid", FitMethod::centroid}};
constexpr std::size_t kMaxNeighbors = std::size_t{1} << 20;

/// Images below label folders; classes[i] is the label of list.inputs[i].
struct LabeledImages {
  InputList list;
  std::vector<std::string> labels;
  std::vector<std::uint32_t> classes;
};

LabeledImages read_folder(const fs::path& root) {
  LabeledImages out;
  for (const fs::path& folder : class_folders(root, "fit", out.list)) {
    const std::size_t failures = out.list.failures.size();
    const std::vector<std::string> images = images_below(folder, out.list);
    if (images.empty()) {
      if (out.list.failures.size() == failures)
        out.list.failures.push_back(
            {folder.string(), "no images in the folder of this label; it is left out"});
      continue;
    }
    for (const std::string& image : images) {
      out.list.inputs.push_back({.name = image, .path = image, .pixels = nullptr});
      out.classes.push_back(static_cast<std::uint32_t>(out.labels.size()));
    }
    out.labels.push_back(folder.filename().string());
  }
  return out;
}

void check_labels(const fs::path& root, const std::vector<std::string>& labels) {
  VIT_CHECK(!labels.empty(), "fit", root.string(), ": no images that could be read");
  VIT_CHECK(labels.size() > 1, "fit", root.string(), ": images of one label only, ",
            printable(labels.front()), "; two are needed");
}

/// The features of images, one row for each, and their classes.
struct TrainingRows {
  std::size_t num_features = 0;
  std::vector<float> numbers;  // (n, num_features)
  std::vector<std::uint32_t> classes;

  /// At most `most` rows in total: memory is allocated once.
  void add(std::span<const float> features, std::uint32_t label, std::size_t most) {
    num_features = features.size();
    if (numbers.empty()) numbers.reserve(most * num_features);
    numbers.insert(numbers.end(), features.begin(), features.end());
    classes.push_back(label);
  }
  TensorView<const float> view() const { return {numbers.data(), Shape{classes.size(), num_features}}; }
};

/// Removes labels without a readable image and renumbers the classes.
std::vector<std::string> remove_empty_labels(const std::vector<std::string>& labels,
                                             std::vector<std::uint32_t>& classes, Progress& progress) {
  std::vector<bool> has_image(labels.size());
  for (const std::uint32_t c : classes) has_image[c] = true;
  std::vector<std::string> kept;
  std::vector<std::uint32_t> number(labels.size());
  for (std::size_t k = 0; k < labels.size(); ++k) {
    number[k] = static_cast<std::uint32_t>(kept.size());
    if (has_image[k]) kept.push_back(labels[k]);
  }
  if (kept.size() < labels.size()) {
    progress.clear();
    print_failure("", text("labels without a readable image are left out: ", labels.size() - kept.size(),
                           " of ", labels.size()));
  }
  for (std::uint32_t& c : classes) c = number[c];
  return kept;
}

/// Limitations of the cross-validation with these labels, or "".
std::string fold_note(const ClassifierHead& head, std::span<const std::uint32_t> classes) {
  if (head.num_folds == 0) {
    return head.strength ? text("no label has two images: no cross-validation, strength ", *head.strength)
                         : "no label has two images: no cross-validation";
  }
  std::vector<std::size_t> counts(head.labels.size());
  for (const std::uint32_t c : classes) ++counts[c];
  const auto few = std::ranges::count_if(counts, [&](std::size_t count) { return count < head.num_folds; });
  if (few == 0) return "";
  const auto fewest = std::ranges::min_element(counts);
  const std::string& name = head.labels[static_cast<std::size_t>(fewest - counts.begin())];
  return text(few, few == 1 ? " label has" : " labels have", " fewer than ", head.num_folds, " images (",
              printable(name), ": ", *fewest, ") and ", few == 1 ? "is" : "are", " missing from some of the ",
              head.num_folds, " folds of the cross-validation");
}

JsonValue result_json(const ClassifierHead& head, std::size_t num_failed) {
  JsonValue out{
      {"images", head.num_images}, {"classes", head.labels.size()},   {"method", to_string(head.method)},
      {"features", head.features}, {"cross_validated_top1", nullptr}, {"strength", nullptr},
      {"failed", num_failed}};
  if (head.cross_validated_top1) out["cross_validated_top1"] = *head.cross_validated_top1;
  if (head.strength) out["strength"] = *head.strength;
  return out;
}

std::string as_text(const ClassifierHead& head, const fs::path& output) {
  std::string out = text(head.labels.size(), " classes from ", head.num_images, " images, ",
                         to_string(head.method), " on ", head.features);
  char number[64];
  if (head.cross_validated_top1) {
    std::snprintf(number, sizeof number, ", top-1 %.2f %% in %zu-fold cross-validation",
                  100 * *head.cross_validated_top1, head.num_folds);
    out += number;
  }
  if (head.strength) {
    std::snprintf(number, sizeof number, ", strength %.4g", *head.strength);
    out += number;
  }
  return out + ": " + printable(output.string()) + "\n";
}

/// Checks before hours of embedding instead of after.
void check_memory(const FitCommandOptions& options, const LabeledImages& images, std::size_t num_features) {
  const std::size_t num_images = images.classes.size();
  internal::check_fit_memory(options.method, num_images, num_features, images.labels.size(),
                             num_images * num_features * sizeof(float));
}

ClassifierHead fit_rows(const FitCommandOptions& options, const TrainingRows& rows) {
  const FitOptions fit_options = options.library_options();
  switch (options.method) {
    case FitMethod::knn: return fit_knn(rows.view(), rows.classes, fit_options);
    case FitMethod::centroid: return fit_centroid(rows.view(), rows.classes, fit_options);
    case FitMethod::logistic: break;
  }
  return fit_linear(rows.view(), rows.classes, fit_options);
}

void check_usage(const FitCommandOptions& options) {
  if (options.output.empty()) fail_usage("--output is required");
  constexpr std::array kHeadFormats{ResultFormat::safetensors};
  result_format(options.output, kHeadFormats);
  if (options.neighbors && options.method != FitMethod::knn) fail_usage("--k is for --method knn");
  if (options.strength && options.method != FitMethod::logistic)
    fail_usage("--strength is for --method logistic");
  check_pixel_fit_options(options.pixels);
  if (!options.pixels.are_given() && options.inputs.size() != 1)
    fail_usage("one FOLDER with a subfolder of images for each label is expected, found ",
               options.inputs.size(), "; with labels of pixels, --truth names them");
}

class Fitting : public ImageWork {
 public:
  explicit Fitting(const FitCommandOptions& options)
      : options_(options), folder_(options.inputs.front()), images_(read_folder(folder_)) {}

  InputList take_list() { return std::move(images_.list); }

  std::optional<Request> load(ImageRun& run) override {
    vector_ = parse_vector_feature(options_.features, *run.load());
    check_labels(folder_, images_.labels);
    return vector_;
  }

  std::string add(ImageRun&, const StreamedImage& image) override {
    const std::span<const float> numbers = (*image.outputs)[vector_].flat();
    if (std::string defect = defect_of(numbers, "the features are"); !defect.empty()) return defect;
    if (rows_.classes.empty()) check_memory(options_, images_, numbers.size());
    rows_.add(numbers, images_.classes[image.index], images_.classes.size());
    return "";
  }

  int finish(ImageRun& run) override {
    if (interrupted()) return 0;
    const std::vector<std::string> labels =
        remove_empty_labels(images_.labels, rows_.classes, run.progress());
    run.progress().finish("");
    check_labels(folder_, labels);

    release_interrupts();  // nothing is lost until the head is written
    ClassifierHead head = fit_rows(options_, rows_);
    head.labels = labels;
    head.attach(run.model(), vector_);
    const std::string feature = to_string(vector_);
    head.record = RunFacts{
        .model = run_model(options_.common, run.model(), std::span(&feature, 1)),
        .others = {}}.json();
    hold_interrupts();
    save_head(options_.output, head);
    const std::string note = fold_note(head, rows_.classes);
    if (!note.empty() && !options_.common.quiet) print_failure("", note);
    print_result(options_.format == PrintFormat::json
                     ? result_json(head, run.progress().num_failed()).dump() + "\n"
                     : as_text(head, options_.output));
    return 0;
  }

 private:
  const FitCommandOptions& options_;
  const fs::path folder_;
  LabeledImages images_;
  Output vector_ = Output::pooled;
  TrainingRows rows_;
};

int fit(const FitCommandOptions& options) {
  if (!options.pixels.paint.empty()) return paint_pixels(options);
  check_usage(options);
  if (options.pixels.are_given()) return fit_pixels(options);
  Fitting work(options);
  return run_images({.name = "fit",
                     .common = options.common,
                     .list = [&] { return work.take_list(); },
                     .files = {options.output}},
                    work);
}

void add_fit_options(std::vector<Option>& list, FitCommandOptions& options) {
  list.push_back(
      {.name = "FOLDER",
       .type_name = "",
       .help = "Folder with one subfolder of images per label; with --truth image files and folders",
       .target = {[&to = options.inputs](const std::vector<std::string>& values) { to = values; }},
       .occurs = Occurs::all_positionals,
       .is_required = true});
  list.push_back({.name = "-o,--output",
                  .type_name = "HEAD",
                  .help = "File for the classifier head, ends in .safetensors",
                  .target = text_target(options.output)});
  list.push_back({.name = "--method",
                  .type_name = "NAME",
                  .help = "logistic, knn or centroid, see below",
                  .target = choice_target(options.method, kMethods)});
  list.push_back(
      {.name = "--features",
       .type_name = "NAME",
       .help = "pooled, projected, cls or logits; default: projected if the model has it, else pooled; with "
               "--truth patches, or blocks such as block.3,block.11",
       .target = offering(text_target(options.features), vector_names())});
  list.push_back(
      {.name = "--k",
       .type_name = "K",
       .help = "Neighbors that vote (knn)",
       .target = parsed_target(
           options.neighbors, [](const std::string& value) { return parse_integer(value, 1, kMaxNeighbors); },
           "20")});
  list.push_back({.name = "--strength",
                  .type_name = "C",
                  .help = "C of scikit-learn's LogisticRegression (logistic); default: by cross-validation",
                  .target = parsed_target(options.strength, [](const std::string& value) {
                    return parse_real(value, 1e-12, 1e12);
                  })});
  list.push_back({.name = "--format",
                  .type_name = "FORMAT",
                  .help = "text or json",
                  .target = choice_target(options.format, kPrintFormatsWithoutCsv)});
  add_pixel_fit_options(list, options.pixels);
}

}  // namespace

Command fit_command() {
  const auto options = std::make_shared<FitCommandOptions>();
  Command command{
      .name = "fit",
      .summary = "Learn your own labels of images from a folder, or of pixels from strokes and masks",
      .footer = kFooter,
      .options = {},
      .run = [options] { return fit(*options); }};
  add_fit_options(command.options, *options);
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
