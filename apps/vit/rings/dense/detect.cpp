// vit detect: boxes of what is in images, of the classes of the model or of words.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/texts.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/draw_shapes.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"
#include "vit/boxes.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "Boxes are [x0, y0, x1, y1] in pixels from the upper left corner, in the order of the model, those with "
    "a "
    "score above\n"
    "--threshold. The output is one file of arrays, .safetensors or .npz: for input I boxes.I (n, 4), "
    "scores.I "
    "(n) and\n"
    "classes.I (n) int32; with --raw boxes.I (N, 4) as center, width and height from 0 to 1, logits.I (N, "
    "classes; of\n"
    "models with classes of their own, no object at the end), objectness.I (N) where there is one. Or "
    "FOLDER/, "
    "with files\n"
    "for each image:\n"
    "  color  NAME_color.png, the image with frames, names and scores\n"
    "  coco   NAME.json, a list of image_id, category_id, bbox [x, y, width, height] and score\n"
    "Examples:\n"
    "  vit detect --model yolos-tiny street.jpg\n"
    "  vit detect --model owlv2-base-patch16-ensemble --classes \"a cat, a remote control\" sofa.jpg\n"
    "  vit detect --model yolos-tiny photos/ --output boxes/ --format color,json > boxes.jsonl";

constexpr const char* kDetectFormatHelp =
    "Files of FOLDER/: color (default) and coco; and json or text for the lines, which are json with arrays";
constexpr MapFormat kDetectFormats[]{{"color", "_color.png"}, {"coco", ".json"}};

struct DetectOptions {
  DenseRunOptions run;
  std::filesystem::path labels;
  ClassNames texts;
  TemplateOptions templates;
  std::optional<float> threshold;
};

std::string line_of(const std::string& file, std::span<const Detection> found, bool is_json) {
  if (!is_json) {
    std::string out = printable(file) + "\n";
    for (const Detection& d : found) {
      char numbers[160];
      std::snprintf(numbers, sizeof numbers, "  %6.2f %%  %9.1f %9.1f %9.1f %9.1f  ",
                    100.0 * static_cast<double>(d.score), d.box.x0, d.box.y0, d.box.x1, d.box.y1);
      out += numbers + printable(d.label) + "\n";
    }
    if (found.empty()) out += "  no boxes (--threshold sets the score that they need)\n";
    return out;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_boxes(json, found);
  json.end_object();
  return out + "\n";
}

std::string coco_of(const std::string& file, std::span<const Detection> found) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Detection& d : found) {
    json.on_own_line().begin_object().member("image_id", file);
    json.member("category_id", d.index).member("category", d.label);
    const double width = d.box.x1 - d.box.x0, height = d.box.y1 - d.box.y0;
    write_edges(json.key("bbox"), {d.box.x0, d.box.y0, width, height}).member("score", d.score).end_object();
  }
  out += "\n";
  json.end_array();
  return out + "\n";
}

std::vector<NamedArray> arrays_of(std::span<const Detection> found) {
  NamedArray boxes = NamedArray::of_rows("boxes", {found.size(), 4}),
             scores = NamedArray::of_rows("scores", {found.size()});
  NamedArray classes = NamedArray::of_rows("classes", {found.size()}, internal::Dtype::i32);
  for (const Detection& d : found) {
    for (const double edge : {d.box.x0, d.box.y0, d.box.x1, d.box.y1}) boxes.push(static_cast<float>(edge));
    scores.push(d.score);
    classes.push(static_cast<std::int32_t>(d.index));
  }
  return {std::move(boxes), std::move(scores), std::move(classes)};
}

std::vector<NamedArray> raw_arrays_of(const ImageOutputs& outputs, const Detector& detector, int threads) {
  std::vector<NamedArray> arrays;
  arrays.push_back(NamedArray::of("boxes", outputs[Output::boxes]));
  const Tensor<float> logits = detector.logits(outputs, threads);
  arrays.push_back(NamedArray::of("logits", logits.view()));
  if (detector.request().has(Output::objectness)) {
    arrays.push_back(NamedArray::of("objectness", outputs[Output::objectness]));
    arrays.back().shape.pop_back();
  }
  return arrays;
}

/// Boxes of texts, or of the classes of the model. Nothing after an interrupt.
std::optional<Detector> load_detector(const DetectOptions& options,
                                      const std::shared_ptr<const Model>& known) {
  const Model& model = *known;
  const bool takes_texts = model.dense_config()->find(Output::box_vectors) != nullptr;
  const CommonOptions& common = options.run.common;
  if (!takes_texts) {
    if (options.texts.are_given() || options.templates.are_given())
      fail_usage("--classes: this model has classes of its own; words are for OWL-ViT and OWLv2");
    return Detector(known, box_labels(*model.dense_config(), options.labels));
  }
  if (!options.texts.are_given())
    fail_usage("this model finds what words say; name them with --classes or --classes-file");
  if (!options.labels.empty()) fail_usage("--labels: the classes of --classes are called by their names");
  if (options.texts.file.extension() == ".safetensors") {
    if (options.templates.are_given())
      fail_usage("--template: the vectors of ", options.texts.file.string(),
                 " are ready, templates came before");
    return Detector::of_texts(known, load_class_vectors(options.texts.file));
  }
  std::vector<std::string> names = read_class_names(options.texts),
                           templates = read_templates(options.templates);
  if (templates.empty()) templates.emplace_back(kPlainTemplate);
  TextEncoder encoder(load_text_tower(common), {.threads = common.session.threads});
  std::optional<ClassVectors> vectors = encode_classes(encoder, std::move(names), templates, common);
  if (!vectors) return std::nullopt;
  return Detector::of_texts(known, std::move(*vectors));
}

class DetectWork : public ImageWork {
 public:
  explicit DetectWork(const DetectOptions& options)
      : options_(options),
        outputs_("detect", options.run, kDetectFormats, {"color"}),
        json_(options.run.has_word("json") || options.run.writes_arrays()) {}

  int run() { return outputs_.run(*this, {options_.labels, options_.texts.file, options_.templates.file}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    detector_ = load_detector(options_, outputs_.load(run, Output::boxes));
    if (!detector_) return std::nullopt;
    outputs_.note("threshold", text(options_.threshold.value_or(detector_->threshold())));
    std::string labels;
    for (const std::string& label : detector_->labels()) labels += label + "\n";
    outputs_.note("classes", labels);
    outputs_.open(run);
    return detector_->request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    for (const Output output : {Output::boxes, Output::box_classes, Output::box_vectors}) {
      if (detector_->request().has(output) && !are_finite((*image.outputs)[output].flat()))
        return "the boxes are not finite; damaged pixels or weights?";
    }
    return failure_of([&] {
      write(run, image, detector_->detect(*image.outputs, options_.threshold, outputs_.threads()));
    });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  void write(ImageRun& run, const StreamedImage& image, std::span<const Detection> found) {
    const Input& input = run.inputs()[image.index];
    if (outputs_.writes_arrays())
      outputs_.add_arrays(run, image.index,
                          options_.run.raw ? raw_arrays_of(*image.outputs, *detector_, outputs_.threads())
                                           : arrays_of(found));
    if (outputs_.writes("coco"))
      write_text(outputs_.path_of(image.index, "coco"), coco_of(input.name, found));
    if (outputs_.writes("color") || outputs_.has_page()) draw(run, image, found);
    MapOutputs::print(run, line_of(input.name, found, json_));
  }

  void draw(const ImageRun& run, const StreamedImage& image, std::span<const Detection> found) {
    const Input& input = run.inputs()[image.index];
    Image picture = picture_of(run, input, image.size);
    for (const Detection& d : found) draw_frame(picture, d.box, voc_color(d.index + 1));
    for (const Detection& d : found) {
      char score[16];
      std::snprintf(score, sizeof score, " %.2f", static_cast<double>(d.score));
      draw_name(picture, d.box, d.label + score, voc_color(d.index + 1));
    }
    if (outputs_.writes("color")) write_png(outputs_.path_of(image.index, "color"), picture);
    if (!outputs_.has_page()) return;
    PageItem item = named_item(input.name);
    item.note = text(image.size.width, " x ", image.size.height);
    for (const Detection& d : found) item.labels.push_back({.name = d.label, .score = d.score});
    outputs_.add_to_page(run, input, std::move(item), picture);
  }

  const DetectOptions& options_;
  MapOutputs outputs_;
  bool json_;
  std::optional<Detector> detector_;
};

}  // namespace

Command detect_command() {
  const auto options = std::make_shared<DetectOptions>();
  Command command{
      .name = "detect",
      .summary = "Boxes of what is in images, of a model's classes or of words",
      .footer = kFooter,
      .options =
          {{.name = "--classes",
            .type_name = "LIST",
            .help = "What to look for in your own words, separated by commas, for OWL-ViT and OWLv2",
            .target = text_target(options->texts.list)},
           {.name = "--classes-file",
            .type_name = "FILE",
            .help = "The same in the forms of --labels, or .safetensors: vectors that vit embed --text-file "
                    "wrote",
            .target = text_target(options->texts.file)},
           labels_option(options->labels),
           {.name = "--threshold",
            .type_name = "P",
            .help = "Boxes with a score above P; default: that of the model's library (OWL 0.1, YOLOS 0.5)",
            .target = parsed_target(
                options->threshold,
                [](const std::string& value) { return static_cast<float>(parse_real(value, 0.0, 1.0)); })}},
      .run = [options] { return DetectWork(*options).run(); }};
  add_template_options(command.options, options->templates);
  add_dense_run_options(command.options, options->run, kDetectFormats, kDetectFormatHelp);
  return command;
}

}  // namespace vit::app
