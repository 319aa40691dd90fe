// vit classify: the most probable classes of images.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/class_options.h"
#include "apps/vit/classes/class_selection.h"
#include "apps/vit/commands/command.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/image_run.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"
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
    "Several classes for each image (taggers), with the threshold of a category of its labels:\n"
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
  std::string out = "{\"file\": ";
  append_json_string(out, row.file);
  out += ", \"top\": [";
  for (std::size_t i = 0; i < row.top.size(); ++i) {
    const Prediction& prediction = row.top[i];
    out += text(i > 0 ? ", " : "", "{\"index\": ", prediction.index, ", \"label\": ");
    append_json_string(out, prediction.label);
    out += ", \"probability\": ";
    append_json_float(out, prediction.probability);
    out += ", \"logit\": ";
    append_json_float(out, prediction.logit);
    out += "}";
  }
  return out + "]}\n";
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

int classify(const ClassifyOptions& options) {
  InputList list = list_inputs(options.inputs, std::cin);
  if (options.shard) take_shard(list, *options.shard);
  confine(options.common, list.inputs, options.classes.files(), {options.html});
  const std::optional<Classes> classes = load_classes(options.common, options.classes);
  if (!classes) return interrupted_exit_code();
  const Selection selection = make_selection(options.selection, *classes);
  const bool are_probabilities = selection.activation != ClassActivation::none;
  const Classifier& classifier = classes->classifier;
  ImageRun run("classify", options.common, classifier.model());
  check_html(options.html, list.inputs, options.common);
  run.start(std::move(list));
  std::vector<PageItem> items;  // of --html

  const bool colors = ::isatty(STDOUT_FILENO) == 1;
  const bool is_first = !options.shard || options.shard->index == 0;  // parts are joined
  if (options.format == PrintFormat::csv && is_first) print_result("file,rank,index,label,probability\n");
  std::vector<float> values(classifier.size());
  run.for_each(classifier.request(), [&](std::size_t index, const ImageOutputs& outputs) {
    classifier.values(outputs, values);
    std::string defect = defect_of(values);
    if (!defect.empty()) return defect;
    const std::vector<Prediction> top = classifier.predict(values, selection);
    const Row row{run.inputs()[index].name, top};
    const std::string lines = options.format == PrintFormat::json  ? as_json(row)
                              : options.format == PrintFormat::csv ? as_csv(row)
                                                                   : as_text(row, are_probabilities, colors);
    run.progress().clear();
    print_result(lines);
    if (!options.html.empty()) items.push_back(page_item(row));
    return defect;
  });
  const int code = run.finish();
  if (!options.html.empty()) {
    HtmlPage page{.title = "vit classify",
                  .facts = {count_of(items.size(), "image")},
                  .scores = are_probabilities ? PageScores::probability : PageScores::number};
    page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(items)});
    write_run_page(options.html, std::move(page), run.inputs(), options.common);
  }
  return code;
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
                               .help = "text, json (one object a line) or csv",
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
