// vit segment with phrases and boxes: every instance of what they mean, or the pixels of all of them.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/prompt_results.h"
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

std::string PhrasePrompts::unused(std::span<const Input> inputs) const {
  if (phrases_.empty()) return "";  // an image without boxes is then an error of its own
  std::set<std::string_view> names;
  for (const Input& input : inputs) names.insert(input.name);
  std::size_t count = 0;
  std::string first;
  for (const auto& [file, lines] : boxes_) {
    if (!names.contains(file) && count++ == 0) first = file;
  }
  if (count == 0) return "";
  return text("boxes of ", first, count == 1 ? "" : text(" and ", count - 1, " others"),
              " are not used: no input has this name, as it was given");
}

namespace {

/// The settings of a job.
PromptOptions prompt_options_of(const PromptJob& job) {
  PromptOptions out;
  out.threshold = job.threshold.value_or(out.threshold);
  out.mask_threshold = job.mask_threshold.value_or(out.mask_threshold);
  if (job.choices.rule == PromptRuleChoice::repository) out.rule = PromptRule::repository;
  return out;
}

}  // namespace

void note_prompts(MapOutputs& outputs, const PromptJob& job) {
  const PromptOptions options = prompt_options_of(job);
  outputs.note("task", job.semantic ? "semantic" : "instance");
  outputs.note("thresholds", text(options.threshold, ",", options.mask_threshold));
  std::vector<std::string> shapes;
  for (const PointLine& point : job.choices.points)
    shapes.push_back(text(point.positive ? "point " : "point that is not meant ", point.x, ",", point.y));
  if (const auto& box = job.choices.box)
    shapes.push_back(text("box ", box->x0, ",", box->y0, ",", box->x1, ",", box->y1));
  outputs.note("shapes", shapes);
  outputs.note("rule", job.choices.rule == PromptRuleChoice::library ? "library" : "repository");
}

PhraseWork::PhraseWork(const char* command, const PromptJob& job, std::span<const MapFormat> formats,
                       std::vector<std::string_view> fallback)
    : prompts_(job.choices),
      job_(job),
      outputs_(command, job.run, formats, std::move(fallback)),
      json_(job.run.has_word("json") || job.run.writes_arrays()) {}

ClassPrompts PhraseWork::asked(const std::string& name) const {
  return {
      .labels = prompts_.labels(), .prompts = prompts_.of_image(name), .options = prompt_options_of(job_)};
}

std::optional<Request> PhraseWork::load(ImageRun& run) {
  auto model = load_prompts(run, job_.run.common, PromptUse::phrases);
  note_prompts(outputs_, job_);
  outputs_.note("classes", prompts_.labels());
  outputs_.open(run);
  if (const std::string unused = prompts_.unused(run.inputs()); !unused.empty())
    print_failure(job_.choices.boxes.string(), unused);
  segmenter_.emplace(std::move(model), PromptSegmenterOptions{.threads = outputs_.threads()});
  return segmenter_->model().request();
}

bool is_prompt_model(const CommonOptions& common) {
  check_has_weights(common);
  return PromptModel::is_at(model_path(common), common.model_options);
}

namespace {

class PhraseSegmentWork : public PhraseWork {
 public:
  explicit PhraseSegmentWork(const PromptJob& job)
      : PhraseWork("segment", job, kPromptFormats, {"png", "color"}) {}

 private:
  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const ClassPrompts prompts = asked(run.inputs()[image.index].name);
      const auto features = segmenter().encode(*image.outputs);
      if (job_.run.raw) return write_raw(run, image, *features, prompts);
      if (!job_.semantic) return write_instances(run, image, *features, prompts);
      write_semantic(outputs_, run, image, find_pixels(segmenter(), *features, prompts),
                     segment_colors(prompts.prompts.size()), json_);
    });
  }

  void write_instances(ImageRun& run, const StreamedImage& image, const PromptFeatures& features,
                       const ClassPrompts& prompts) {
    const FoundInstances all = find_instances(segmenter(), features, prompts);
    if (outputs_.writes_arrays()) outputs_.add_arrays(run, image.index, arrays_of_masks(all.found));
    write_masks(outputs_, run, image, all.found);
    MapOutputs::print(run, line_of_masks(run.inputs()[image.index].name, all.found, "instance", json_));
  }

  void write_raw(ImageRun& run, const StreamedImage& image, const PromptFeatures& features,
                 const ClassPrompts& prompts) {
    outputs_.add_arrays(run, image.index, find_raw(segmenter(), features, prompts));
    const FoundInstances all = find_instances(segmenter(), features, prompts);
    MapOutputs::print(run, line_of_masks(run.inputs()[image.index].name, all.found, "instance", json_));
  }
};

}  // namespace

int segment_prompts(const PromptJob& job) {
  const PromptChoices& choices = job.choices;
  if (!choices.name_objects()) return PhraseSegmentWork(job).run();
  if (choices.texts.are_given() || !choices.boxes.empty())
    fail_usage(
        "--points, --box and --objects mean one object each; --classes and --boxes find every instance: take "
        "one of both");
  if (job.semantic) fail_usage("--task semantic is for --classes and --boxes");
  if (job.threshold || job.mask_threshold)
    fail_usage(job.threshold ? "--threshold" : "--mask-threshold",
               " is for --classes and --boxes; the pixels of an object are those above 0");
  return segment_objects(job);
}

}  // namespace vit::app
