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
#include "apps/vit/options/load_model.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/detect_results.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/dense/prompt_options.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_texts.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/boxes.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "Boxes are [x0, y0, x1, y1] in pixels from the upper left corner, in the order of the model, or of "
    "falling scores where a box may have several classes (RF-DETR, LW-DETR), those with a score above "
    "--threshold. The output is one file of arrays, .safetensors or .npz: for input I boxes.I (n, 4), "
    "scores.I (n) and classes.I (n) int32; with --raw boxes.I (N, 4) as center, width and height from 0 to "
    "1, logits.I (N, classes; of YOLOS, no object at the end), objectness.I (N) where there is one. Or "
    "FOLDER/, with files for each image:\n"
    "  color  NAME_color.png, the image with frames, names and scores\n"
    "  coco   NAME.json, a list of image_id, category_id, bbox [x, y, width, height] and score\n"
    "Examples:\n"
    "  vit detect --model yolos-tiny street.jpg\n"
    "  vit detect --model owlv2-base-patch16-ensemble --classes \"a cat, a remote control\" sofa.jpg\n"
    "  vit detect --model sam3 --classes \"yellow bus, person\" street.jpg --format json\n"
    "  vit detect --model yolos-tiny photos/ --output boxes/ --format color,json > boxes.jsonl";

constexpr const char* kDetectFormatHelp =
    "Files of FOLDER/: color (default) and coco; and json or text for the lines, which are json with arrays";

struct DetectOptions {
  DenseRunOptions run;
  std::filesystem::path labels;
  ClassNames texts;
  TemplateOptions templates;
  std::optional<float> threshold;
  PromptChoices prompts;
};

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
      fail_usage("--classes: this model has classes of its own; words are for OWL-ViT, OWLv2 and SAM 3");
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
    outputs_.note("classes", detector_->labels());
    outputs_.open(run);
    return detector_->request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    for (const Output output : {Output::boxes, Output::box_classes, Output::box_vectors}) {
      if (!detector_->request().has(output)) continue;
      if (std::string defect = defect_of((*image.outputs)[output].flat(), "the boxes are"); !defect.empty())
        return defect;
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
                                           : arrays_of_detections(found));
    write_detections(outputs_, run, image, found);
    MapOutputs::print(run, line_of_detections(input.name, found, json_));
  }

  const DetectOptions& options_;
  MapOutputs outputs_;
  bool json_;
  std::optional<Detector> detector_;
};

int run_detect(DetectOptions& options) {
  options.prompts.texts = options.texts;
  if (!options.prompts.are_given() && is_prompt_model(options.run.common)) fail_without_prompts();
  if (!options.prompts.are_given() || !is_prompt_model(options.run.common)) {
    if (!options.prompts.boxes.empty()) fail_usage("--boxes: this model takes no examples; SAM 3 does");
    return DetectWork(options).run();
  }
  if (options.templates.are_given() || !options.labels.empty())
    fail_usage("--template and --labels are not for SAM 3, which takes phrases as they are");
  return detect_prompts({.run = options.run, .choices = options.prompts, .threshold = options.threshold});
}

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
            .help = "What to look for in your own words, separated by commas, for OWL-ViT, OWLv2 and SAM 3",
            .target = text_target(options->texts.list)},
           {.name = "--classes-file",
            .type_name = "FILE",
            .help = "The same in the forms of --labels, or .safetensors: vectors that vit embed --text-file "
                    "wrote",
            .target = text_target(options->texts.file)},
           {.name = "--boxes",
            .type_name = "FILE",
            .help = "SAM 3: boxes that show what is meant, JSON lines as of vit segment",
            .target = text_target(options->prompts.boxes)},
           labels_option(options->labels),
           {.name = "--threshold",
            .type_name = "P",
            .help = "Boxes with a score above P; default: that of the model's library (OWL 0.1, DETRs and "
                    "YOLOS 0.5, SAM 3 0.3)",
            .target = parsed_target(
                options->threshold,
                [](const std::string& value) { return static_cast<float>(parse_real(value, 0.0, 1.0)); })}},
      .run = [options] { return run_detect(*options); }};
  add_template_options(command.options, options->templates);
  add_dense_run_options(command.options, options->run, kDetectFormats, kDetectFormatHelp);
  return command;
}

}  // namespace vit::app
