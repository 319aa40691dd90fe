// vit classify: the most probable classes of images.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/class_options.h"
#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/session.h"

namespace vit::app {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  vit classify photo.jpg\n"
    "  vit classify --model vit_base/ --top 3 photos/\n"
    "  find photos -name '*.jpg' | vit classify --format json - > labels.jsonl\n"
    "  vit classify --format csv prepared.npy\n"
    "  vit classify --format csv --shard 0/4 shard-*.tar > part-0.csv\n"
    "Multiple labels per image (taggers), with a separate threshold for a category of labels:\n"
    "  vit classify --model tagger/ --labels tagger/selected_tags.csv --pad white --channels bgr \\\n"
    "    --activation sigmoid --threshold 0.35 --threshold 4=0.85 photos/\n"
    "Classes in your own words, for models of images and texts (CLIP, SigLIP, Perception Encoder, ...):\n"
    "  vit classify --model siglip2/ --classes \"a cat, a dog, two cats\" photos/\n"
    "  vit classify --model siglip2/ --classes-file names.txt --template \"a photo of a {}.\" photos/\n"
    "  vit embed --model siglip2/ --text-file names.txt --template \"a photo of a {}.\" -o "
    "classes.safetensors\n"
    "  vit classify --model siglip2/ --classes-file classes.safetensors photos/";

struct ClassifyOptions {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::optional<Shard> shard;
  ClassOptions classes;
  SelectionOptions selection;
  PrintFormat format = PrintFormat::text;
  std::filesystem::path html;
};

struct Row {
  const std::string& file;
  const std::vector<Prediction>& top;
};

std::string as_text(const Row& row, bool are_probabilities, bool colors) {
  std::string out = (colors ? "\x1b[1m" : "") + printable(row.file) + (colors ? "\x1b[0m" : "") + "\n";
  for (const Prediction& prediction : row.top) {
    char number[32];
    const double value = static_cast<double>(prediction.probability);
    std::snprintf(number, sizeof number, are_probabilities ? "  %6.2f %%  " : "  %9.6g  ",
                  are_probabilities ? 100.0 * value : value);
    out += number + printable(prediction.label) + "\n";
  }
  return out;
}

std::string as_json(const Row& row) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", row.file).key("top").begin_array();
  for (const Prediction& prediction : row.top) {
    json.begin_object().member("index", prediction.index).member("label", prediction.label);
    json.member("probability", prediction.probability).member("logit", prediction.logit).end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

std::string as_csv(const Row& row) {
  std::string out;
  for (std::size_t i = 0; i < row.top.size(); ++i) {
    const Prediction& prediction = row.top[i];
    out += csv_field(row.file) + text(",", i + 1, ",", prediction.index, ",") + csv_field(prediction.label) +
           ",";
    append_json_float(out, prediction.probability);
    out += "\n";
  }
  return out;
}

PageItem page_item(const Row& row) {
  PageItem item = named_item(row.file);
  if (!row.top.empty()) item.score = row.top.front().probability;
  for (const Prediction& prediction : row.top)
    item.labels.push_back({.name = prediction.label, .score = prediction.probability});
  return item;
}

std::string lines_of(const Row& row, PrintFormat format, bool are_probabilities) {
  switch (format) {
    case PrintFormat::json: return as_json(row);
    case PrintFormat::csv: return as_csv(row);
    case PrintFormat::text: break;
  }
  return as_text(row, are_probabilities, /*colors=*/::isatty(STDOUT_FILENO) == 1);
}

class Classification : public ImageWork {
 public:
  explicit Classification(const ClassifyOptions& options) : options_(options) {}

  std::optional<Request> load(ImageRun& run) override {
    classes_ = load_classes(options_.common, options_.classes);
    if (!classes_) return std::nullopt;
    run.set_model(classes_->classifier.model());
    selection_ = make_selection(options_.selection, *classes_);
    values_.resize(classes_->classifier.size());
    return classes_->classifier.request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    classes_->classifier.values(*image.outputs, values_);
    std::string defect = defect_of(values_, "the logits are");
    if (!defect.empty()) return defect;
    const std::vector<Prediction> top = classes_->classifier.predict(values_, selection_);
    const Row row{run.inputs()[image.index].name, top};
    run.progress().clear();
    print_header();
    print_result(lines_of(row, options_.format, are_probabilities()));
    if (!options_.html.empty()) items_.push_back(page_item(row));
    return "";
  }

  int finish(ImageRun& run) override {
    print_header();
    if (options_.html.empty()) return 0;
    run.progress().finish("");
    HtmlPage page{.title = "vit classify",
                  .facts = {count_of(items_.size(), "image")},
                  .scores = are_probabilities() ? PageScores::probability : PageScores::number};
    set_failures(page, run.progress());
    page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(items_)});
    write_run_page(options_.html, std::move(page), run.inputs(), options_.common);
    return 0;
  }

 private:
  bool are_probabilities() const { return selection_.activation != ClassActivation::none; }
  /// Once, before the first part of a table.
  void print_header() {
    const bool is_first = !options_.shard || options_.shard->index == 0;  // parts are concatenated
    if (options_.format == PrintFormat::csv && is_first && !std::exchange(has_header_, true))
      print_result("file,rank,index,label,probability\n");
  }

  const ClassifyOptions& options_;
  std::optional<Classes> classes_;
  ClassSelection selection_;
  std::vector<float> values_;    // of an image
  std::vector<PageItem> items_;  // of --html
  bool has_header_ = false;
};

int classify(ClassifyOptions& options) {
  take_class_record(options.classes, options.common);
  Classification work(options);
  return run_images({.name = "classify",
                     .common = options.common,
                     .inputs = options.inputs,
                     .shard = options.shard,
                     .takes_videos = true,
                     .reads = options.classes.files(),
                     .files = {options.html}},
                    work);
}

}  // namespace

Command classify_command() {
  const auto options = std::make_shared<ClassifyOptions>();
  Command command{.name = "classify",
                  .summary = "Classify images",
                  .footer = kExamples,
                  .options = {inputs_option(options->inputs),
                              {.name = "--format",
                               .type_name = "FORMAT",
                               .help = "text, json (one object per line) or csv",
                               .target = choice_target(options->format, kPrintFormats)},
                              html_option(options->html)},
                  .run = [options] { return classify(*options); }};
  command.options.push_back(shard_option(options->shard));
  add_selection_options(command.options, options->selection);
  add_class_options(command.options, options->classes);
  add_image_run_options(command.options, options->common);
  return command;
}

}  // namespace vit::app
