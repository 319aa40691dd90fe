// vit evaluate: accuracy on a folder with one folder of images per class.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/class_options.h"
#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/session.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "FOLDER contains one subfolder per class, named by label, synset or index:\n"
    "  validation/tench/1.jpg, validation/n01440764/1.jpg or validation/0/1.jpg\n"
    "Accuracy needs one class per image: for a multi-label model (a tagger), the best one counts.\n"
    "Examples:\n"
    "  vit evaluate validation/\n"
    "  vit evaluate --model vit_base/ --format json validation/ > accuracy.json\n"
    "  vit evaluate --anomaly bank.safetensors bottle/test\n"
    "  vit evaluate --task depth --model depth_anything/ --truth nyu/depth nyu/images\n"
    "  vit evaluate --task segment --model eomt_ade20k/ --truth annotations --reduce-labels images\n"
    "  vit evaluate --task segment --classifier leaf.safetensors --truth masks images\n"
    "  vit evaluate --task segment --model eomt_coco/ --truth panoptic_val2017.json val2017\n"
    "  vit evaluate --model vit_base/ --scale-consistency photos --sizes 336,448 --rope-scaling ntk";

struct EvaluateOptions {
  CommonOptions common;
  fs::path folder;
  ClassOptions classes;
  PrintFormat format = PrintFormat::text;
  std::vector<std::shared_ptr<Measure>> measures;
};

/// Images of a dataset; truth[i] is the class of list.inputs[i].
struct Dataset {
  InputList list;
  std::vector<std::size_t> truth;
};

Dataset read_dataset(const fs::path& root, const Labels& labels) {
  Dataset dataset;
  for (const fs::path& folder : class_folders(root, "evaluate", dataset.list)) {
    const std::string name = folder.filename().string();
    const std::vector<std::size_t> classes = labels.find(name);
    if (classes.size() != 1) {
      const std::size_t num_images = images_below(folder, dataset.list).size();
      if (num_images == 0) {
        dataset.list.notes.push_back({folder.string(), "no images in this folder; it is left out"});
        continue;
      }
      const std::string without = "; without its " + count_of(num_images, "image");
      dataset.list.failures.push_back(
          {folder.string(),
           classes.empty() ? "the model has no class with this name, index or synset" + without
                           : text("the name of ", classes.size(), " classes, ", classes[0], " and ",
                                  classes[1], " among them; name the folder by index or synset", without)});
      continue;
    }
    for (const std::string& image : images_below(folder, dataset.list)) {
      dataset.list.inputs.push_back({.name = image, .path = image, .pixels = nullptr});
      dataset.truth.push_back(classes.front());
    }
  }
  return dataset;
}

/// Counts of the predictions for the images of each class.
class Confusion {
 public:
  void add(std::size_t truth, const std::vector<Prediction>& best) {
    ++counts_[truth][best.front().index];
    ++num_images_;
    num_first_ += best.front().index == truth;
    num_among_ +=
        std::any_of(best.begin(), best.end(), [&](const Prediction& p) { return p.index == truth; });
  }
  std::size_t num_images() const noexcept { return num_images_; }
  double top1() const { return ratio(num_first_); }
  double top5() const { return ratio(num_among_); }

  /// One entry for each class that has images; predictions ordered by count.
  JsonValue to_json(const Labels& labels) const {
    JsonValue out = JsonValue::array();
    for (const auto& [truth, row] : counts_) {
      std::vector<std::pair<std::size_t, std::size_t>> ordered(row.begin(), row.end());
      std::stable_sort(ordered.begin(), ordered.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      std::size_t images = 0;
      JsonValue predicted = JsonValue::array();
      for (const auto& [index, count] : ordered) {
        images += count;
        predicted.push_back({{"index", index}, {"label", labels.name(index)}, {"count", count}});
      }
      const auto correct = row.find(truth);
      out.push_back({{"index", truth},
                     {"label", labels.name(truth)},
                     {"images", images},
                     {"correct", correct == row.end() ? 0 : correct->second},
                     {"predicted", predicted}});
    }
    return out;
  }

 private:
  double ratio(std::size_t count) const {
    return num_images_ == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(num_images_);
  }

  std::map<std::size_t, std::map<std::size_t, std::size_t>> counts_;  // truth -> predicted -> images
  std::size_t num_images_ = 0, num_first_ = 0, num_among_ = 0;
};

JsonValue result_json(const Confusion& confusion, const Labels& labels, const Progress& progress) {
  const double seconds = progress.seconds();
  return {{"images", confusion.num_images()},
          {"top1", confusion.top1()},
          {"top5", confusion.top5()},
          {"failed", progress.num_failed()},
          {"seconds", seconds},
          {"images_per_second", seconds > 0 ? static_cast<double>(confusion.num_images()) / seconds : 0.0},
          {"classes", labels.size()},
          {"confusion", confusion.to_json(labels)}};
}

constexpr std::size_t kMaxLabelColumns = 32;  // names of ImageNet reach 100; longer ones shift the rest

/// Width of a label on the screen, where each character takes one column.
std::size_t columns(const std::string& label) {
  return decode_utf8(printable(label)).size();
}

std::string as_text(const JsonValue& result) {
  char line[160];
  std::snprintf(line, sizeof line, "top-1 %.2f %%, top-5 %.2f %% of %zu images, %zu failed, %.1f images/s\n",
                100 * result["top1"].get<double>(), 100 * result["top5"].get<double>(),
                result["images"].get<std::size_t>(), result["failed"].get<std::size_t>(),
                result["images_per_second"].get<double>());
  std::string out = line;
  std::size_t most_images = 0, longest_label = 0;
  for (const JsonValue& row : result["confusion"]) {
    most_images = std::max(most_images, row["images"].get<std::size_t>());
    longest_label = std::max(longest_label, columns(row["label"].get<std::string>()));
  }
  const int digits = static_cast<int>(std::to_string(most_images).size());
  const std::size_t label_columns = std::min(longest_label, kMaxLabelColumns);
  for (const JsonValue& row : result["confusion"]) {
    const auto images = row["images"].get<std::size_t>(), correct = row["correct"].get<std::size_t>();
    std::snprintf(line, sizeof line, "  %6.2f %%  %*zu of %*zu  ",
                  100.0 * static_cast<double>(correct) / static_cast<double>(images), digits, correct, digits,
                  images);
    const std::string label = row["label"];
    out += line + printable(label);
    std::size_t shown = 0;
    for (const JsonValue& predicted : row["predicted"]) {
      if (predicted["index"] == row["index"] || shown == 3) continue;
      const std::size_t padding = label_columns - std::min(label_columns, columns(label));
      out += (shown++ == 0 ? std::string(padding, ' ') + "  predicted as " : ", ") +
             printable(predicted["label"].get<std::string>()) +
             text(" ", predicted["count"].get<std::size_t>());
    }
    out += "\n";
  }
  return out;
}

class Evaluation : public ImageWork {
 public:
  explicit Evaluation(const EvaluateOptions& options) : options_(options) {}

  /// Loads the classes, then the images: folders are matched with the names of the classes.
  std::optional<Request> load(ImageRun& run) override {
    classes_ = load_classes(options_.common, options_.classes);
    if (!classes_) return std::nullopt;
    const Classifier& classifier = classes_->classifier;
    VIT_CHECK(classifier.activation() != ClassActivation::none, "evaluate",
              model_path(options_.common).string(),
              ": its outputs are regression values, not classes; there is no accuracy to measure");
    run.set_model(classifier.model());
    Dataset dataset = read_dataset(options_.folder, classes_->labels);
    run.list() = std::move(dataset.list);
    truth_ = std::move(dataset.truth);
    values_.resize(classifier.size());
    return classifier.request();
  }

  std::string add(ImageRun&, const StreamedImage& image) override {
    classes_->classifier.values(*image.outputs, values_);
    std::string defect = defect_of(values_, "the logits are");
    if (defect.empty()) confusion_.add(truth_[image.index], ClassSelection(5).of(values_));
    return defect;
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    VIT_CHECK(confusion_.num_images() > 0 || interrupted(), "evaluate", options_.folder.string(),
              ": no image could be evaluated");
    const JsonValue result = result_json(confusion_, classes_->labels, run.progress());
    print_result(options_.format == PrintFormat::json ? result.dump() + "\n" : as_text(result));
    return 0;
  }

 private:
  const EvaluateOptions& options_;
  std::optional<Classes> classes_;
  std::vector<std::size_t> truth_;  // class of each input
  std::vector<float> values_;       // of an image
  Confusion confusion_;
};

/// The measure that is requested, which excludes everything else; null = accuracy.
Measure* requested_measure(const EvaluateOptions& options) {
  Measure* found = nullptr;
  for (auto measure = options.measures.rbegin(); measure != options.measures.rend(); ++measure) {
    if (!(*measure)->is_requested()) continue;
    if (found != nullptr) fail_usage(found->excludes());
    found = measure->get();
  }
  if (found == nullptr || !options.classes.are_given()) return found;
  ClassOptions others = options.classes;
  others.classifier.clear();
  if (others.are_given() || !found->takes_classifier()) fail_usage(found->excludes());
  return found;
}

int evaluate(EvaluateOptions& options) {
  if (Measure* const measure = requested_measure(options)) {
    if (!options.classes.classifier.empty()) take_class_record(options.classes, options.common);
    return measure->run({.folder = options.folder,
                         .common = options.common,
                         .as_json = options.format == PrintFormat::json,
                         .classifier = options.classes.classifier});
  }
  take_class_record(options.classes, options.common);
  Evaluation work(options);
  std::vector<fs::path> reads = options.classes.files();
  reads.push_back(options.folder);
  return run_images({.name = "evaluate",
                     .common = options.common,
                     .list = [] { return InputList(); },  // listed when the classes are known
                     .reads = std::move(reads)},
                    work);
}

}  // namespace

Command evaluate_command(std::vector<std::shared_ptr<Measure>> measures) {
  const auto options = std::make_shared<EvaluateOptions>();
  options->measures = std::move(measures);
  Command command{.name = "evaluate",
                  .summary = "Measure accuracy on a folder of labeled images",
                  .footer = kExamples,
                  .options = {{.name = "FOLDER",
                               .type_name = "",
                               .help = "Folder with one subfolder of images per class",
                               .target = text_target(options->folder),
                               .is_required = true},
                              {.name = "--format",
                               .type_name = "FORMAT",
                               .help = "text or json",
                               .target = choice_target(options->format, kPrintFormatsWithoutCsv)}},
                  .run = [options] { return evaluate(*options); }};
  for (const std::shared_ptr<Measure>& measure : options->measures)
    measure->add_options(command.options, options->common);
  add_class_options(command.options, options->classes);
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
