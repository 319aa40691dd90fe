// vit segment with phrases and boxes: every instance of what they mean, or the pixels of all of them.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/prompt_masks.h"
#include "apps/vit/rings/dense/prompt_run.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {

std::shared_ptr<const PromptModel> load_prompts(ImageRun& run, const CommonOptions& common, PromptUse use) {
  check_has_weights(common);
  auto model = PromptModel::load(model_path(common), common.model_options, text_options(common));
  if (!model->takes(use))
    fail_usage(use == PromptUse::objects
                   ? "--points, --box and --objects: this model has no part for points; the "
                     "whole model (sam3_video) has"
                   : "--classes and --boxes: this model has only the part for points");
  run.set_model(model->image());
  return model;
}

PhrasePrompts::PhrasePrompts(const PromptChoices& choices) : boxes_file_(choices.boxes) {
  if (choices.texts.are_given()) phrases_ = read_class_names(choices.texts);
  if (!choices.boxes.empty())
    boxes_ = parse_example_boxes(read_prompts_file(choices.boxes), choices.boxes.string());
  for (const auto& [file, lines] : boxes_) {
    for (const ExampleLine& line : lines) {
      const bool is_known =
          line.label.empty() || phrases_.empty() || std::ranges::find(phrases_, line.label) != phrases_.end();
      if (!is_known)
        fail_usage("--boxes: ", choices.boxes.string(), ": a box of ", file, " has the label '", line.label,
                   "', which is none of --classes");
      if (line.label.empty() && phrases_.size() > 1)
        fail_usage("--boxes: ", choices.boxes.string(), ": a box of ", file,
                   " has no label, and there are several --classes: which of them does it show?");
    }
  }
  labels_ = phrases_.empty() ? std::vector<std::string>{"visual"} : phrases_;
}

std::vector<Prompt> PhrasePrompts::of_image(const std::string& name) const {
  const auto found = boxes_.find(name);
  VIT_CHECK(!phrases_.empty() || (found != boxes_.end() && !found->second.empty()),
            (Where{"prompts", ErrorKind::mismatch}), name, ": ", boxes_file_.string(),
            " has no boxes of this image, and there are no --classes");
  std::vector<Prompt> out;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    Prompt prompt{.text = phrases_.empty() ? "" : phrases_[i]};
    for (const ExampleLine& line : found != boxes_.end() ? found->second : std::vector<ExampleLine>()) {
      if (phrases_.empty() || line.label.empty() || line.label == phrases_[i])
        prompt.boxes.push_back({.box = line.box, .positive = line.positive});
    }
    out.push_back(std::move(prompt));
  }
  return out;
}

PromptOptions prompt_options_of(const PromptJob& job) {
  PromptOptions out;
  out.threshold = job.threshold.value_or(out.threshold);
  out.mask_threshold = job.mask_threshold.value_or(out.mask_threshold);
  if (job.choices.rule == PromptRuleChoice::repository) out.rule = PromptRule::repository;
  return out;
}

void note_prompts(MapOutputs& outputs, const PromptJob& job) {
  const PromptOptions options = prompt_options_of(job);
  outputs.note("task", job.semantic ? "semantic" : "instance");
  outputs.note("thresholds", text(options.threshold, ",", options.mask_threshold));
  outputs.note("rule", job.choices.rule == PromptRuleChoice::library ? "library" : "repository");
}

PromptSegmenter open_phrases(ImageRun& run, const PromptJob& job, const PhrasePrompts& prompts,
                             MapOutputs& outputs) {
  auto model = load_prompts(run, job.run.common, PromptUse::phrases);
  note_prompts(outputs, job);
  outputs.note("classes", prompts.labels());
  outputs.open(run);
  return PromptSegmenter(std::move(model), {.threads = outputs.threads()});
}

bool is_prompt_model(const CommonOptions& common) {
  check_has_weights(common);
  return PromptModel::is_at(model_path(common), common.model_options);
}

namespace {

class PhraseWork : public ImageWork {
 public:
  explicit PhraseWork(const PromptJob& job)
      : job_(job),
        options_(prompt_options_of(job)),
        prompts_(job.choices),
        outputs_("segment", job.run, kPromptFormats, {"png", "color"}),
        json_(job.run.has_word("json") || job.run.writes_arrays()) {}

  int run() { return outputs_.run(*this, {job_.choices.texts.file, job_.choices.boxes}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    segmenter_.emplace(open_phrases(run, job_, prompts_, outputs_));
    return segmenter_->model().request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const std::vector<Prompt> prompts = prompts_.of_image(run.inputs()[image.index].name);
      const auto features = segmenter_->encode(*image.outputs);
      if (job_.run.raw) return write_raw(run, image, *features, prompts);
      if (job_.semantic) return write_pixels(run, image, *features, prompts);
      write_instances(run, image, *features, prompts);
    });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  /// All classes together, whose masks `instances` keeps.
  void add_instances(std::span<const PromptInstances> instances, FoundMasks& found) const {
    for (std::size_t index = 0; index < instances.size(); ++index) {
      for (std::size_t i = 0; i < instances[index].scores.size(); ++i) {
        const TensorView<const std::uint8_t> mask = instances[index].masks.view()[i];
        found.segments.push_back({.id = 0,
                                  .index = index,
                                  .label = prompts_.labels()[index],
                                  .score = instances[index].scores[i],
                                  .area = area_of(mask)});
        found.boxes.push_back(instances[index].boxes[i]);
        found.masks.push_back(mask);
      }
    }
    found.sort();
  }

  void write_instances(ImageRun& run, const StreamedImage& image, const PromptFeatures& features,
                       const std::vector<Prompt>& prompts) {
    std::vector<PromptInstances> instances;
    for (const Prompt& prompt : prompts) instances.push_back(segmenter_->segment(features, prompt, options_));
    FoundMasks found{.segments = {}, .boxes = {}, .masks = {}, .image = features.image()};
    add_instances(instances, found);
    if (outputs_.writes_arrays()) outputs_.add_arrays(run, image.index, arrays_of_masks(found));
    write_masks(outputs_, run, image, found);
    MapOutputs::print(run, line_of_masks(run.inputs()[image.index].name, found, "instance", json_));
  }

  /// The most probable phrase of each pixel among those above the threshold.
  void write_pixels(ImageRun& run, const StreamedImage& image, const PromptFeatures& features,
                    const std::vector<Prompt>& prompts) {
    const ImageSize size = features.image();
    SegmentMap map{.map = Tensor<std::int32_t>(Shape{size.height, size.width}), .segments = {}};
    std::ranges::fill(map.map.flat(), -1);
    Tensor<float> best(Shape{size.height, size.width});
    std::ranges::fill(best.flat(), static_cast<float>(options_.mask_threshold));
    for (std::size_t index = 0; index < prompts.size(); ++index) {
      const Tensor<float> found = segmenter_->pixel_probabilities(features, prompts[index], options_);
      for (std::size_t i = 0; i < found.num_elements(); ++i) {
        if (!(found.data()[i] > best.data()[i])) continue;
        best.data()[i] = found.data()[i];
        map.map.data()[i] = static_cast<std::int32_t>(index);
      }
    }
    for (std::size_t index = 0; index < prompts.size(); ++index) {
      const auto id = static_cast<std::int32_t>(index);
      const auto area = static_cast<std::size_t>(std::ranges::count(map.map.flat(), id));
      if (area != 0)
        map.segments.push_back({.id = id,
                                .index = index,
                                .label = prompts_.labels()[index],
                                .score = std::nullopt,
                                .area = area});
    }
    write_semantic(outputs_, run, image, map, segment_colors(prompts.size()), json_);
  }

  void write_raw(ImageRun& run, const StreamedImage& image, const PromptFeatures& features,
                 const std::vector<Prompt>& prompts) {
    std::vector<PromptLogits> all;
    for (const Prompt& prompt : prompts) all.push_back(segmenter_->logits(features, prompt, options_));
    const std::size_t classes = all.size(), queries = all.front().classes.num_elements(),
                      edge = all.front().masks.dim(1);
    std::vector<NamedArray> arrays;
    const auto join = [&](const char* name, std::vector<std::size_t> shape, const auto& part) {
      NamedArray& out = arrays.emplace_back(NamedArray::of_rows(name, std::move(shape)));
      for (const PromptLogits& logits : all) {
        const auto bytes = std::as_bytes(part(logits));
        out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
      }
    };
    join("class_logits", {classes, queries}, [](const PromptLogits& l) { return l.classes.flat(); });
    join("presence_logits", {classes}, [](const PromptLogits& l) { return std::span(&l.presence, 1); });
    join("boxes", {classes, queries, 4}, [](const PromptLogits& l) { return l.boxes.flat(); });
    join("mask_logits", {classes, queries, edge, edge}, [](const PromptLogits& l) { return l.masks.flat(); });
    join("semantic_logits", {classes, edge, edge}, [](const PromptLogits& l) { return l.semantic.flat(); });
    outputs_.add_arrays(run, image.index, arrays);
    FoundMasks found{.segments = {}, .boxes = {}, .masks = {}, .image = features.image()};
    std::vector<PromptInstances> instances;
    for (const Prompt& prompt : prompts) instances.push_back(segmenter_->segment(features, prompt, options_));
    add_instances(instances, found);
    MapOutputs::print(run, line_of_masks(run.inputs()[image.index].name, found, "instance", json_));
  }

  const PromptJob& job_;
  PromptOptions options_;
  PhrasePrompts prompts_;
  MapOutputs outputs_;
  bool json_;
  std::optional<PromptSegmenter> segmenter_;
};

}  // namespace

int segment_prompts(const PromptJob& job) {
  const PromptChoices& choices = job.choices;
  if (job.run.raw && !job.run.writes_arrays())
    fail_usage("--raw requires an output of arrays, .safetensors or .npz");
  if (!choices.name_objects()) return PhraseWork(job).run();
  if (choices.texts.are_given() || !choices.boxes.empty())
    fail_usage(
        "--points, --box and --objects mean one object each; --classes and --boxes find every instance: take "
        "one of both");
  if (job.semantic) fail_usage("--task semantic is for --classes and --boxes");
  return segment_objects(job);
}

}  // namespace vit::app
