// vit evaluate --task: the options, and the run that both tasks share.
#include <array>
#include <sstream>
#include <utility>
#include <vector>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/outputs/result_names.h"
#include "apps/vit/rings/dense/dense_options.h"
#include "apps/vit/rings/dense/map_comparison.h"
#include "apps/vit/rings/dense/panoptic_truth.h"
#include "apps/vit/rings/dense/segment_pixels.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMapGroup = "Maps";

constexpr Named<MapTask> kMapTasks[]{{"depth", MapTask::depth}, {"segment", MapTask::segment}};
constexpr Named<AlignChoice> kAligns[]{{"auto", AlignChoice::automatic},
                                       {"none", AlignChoice::none},
                                       {"median", AlignChoice::median},
                                       {"affine", AlignChoice::affine}};

std::array<float, 2> parse_limits(const std::string& value) {
  const std::size_t comma = value.find(',');
  if (comma == std::string::npos) fail_value("MIN,MAX in metres", value);
  const double low = parse_real(value.substr(0, comma), 0.0, 1e9);
  const double high = parse_real(value.substr(comma + 1), 0.0, 1e9);
  if (low >= high) fail_value("MIN,MAX in metres with MIN below MAX", value);
  return {static_cast<float>(low), static_cast<float>(high)};
}

class MapRun : public ImageWork {
 public:
  MapRun(const MapEvaluation& options, const EvaluateRun& evaluation)
      : options_(options), evaluation_(evaluation) {}

  std::optional<Request> load(ImageRun& run) override {
    names_ = result_names(run.inputs());
    const auto compare = options_.task == MapTask::depth ? compare_depth : compare_segments;
    comparison_ = compare(options_, *run.load(), evaluation_.common.session.threads);
    return run.model().dense_config()->request();
  }

  std::string add(ImageRun&, const StreamedImage& image) override {
    return failure_of([&] {
      comparison_->add(image, names_[image.index]);
      ++num_images_;
    });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (interrupted()) return 0;
    VIT_CHECK(num_images_ > 0, "evaluate", evaluation_.folder.string(), ": no image could be evaluated");
    JsonValue result = comparison_->result(num_images_);
    result["failed"] = run.progress().num_failed();
    result["seconds"] = run.progress().seconds();
    print_result(evaluation_.as_json ? result.dump() + "\n" : comparison_->as_text(result));
    return 0;
  }

 private:
  const MapEvaluation& options_;
  const EvaluateRun& evaluation_;
  std::vector<fs::path> names_;
  std::unique_ptr<MapComparison> comparison_;
  std::size_t num_images_ = 0;  // that were compared
};

/// --task, --truth and what they take.
void add_map_options(std::vector<Option>& list, MapEvaluation& evaluation) {
  list.push_back(
      {.name = "--task",
       .type_name = "TASK",
       .help = "depth (AbsRel, delta1, RMSE) or segment (mIoU, or PQ): compare maps of the images below "
               "FOLDER with --truth",
       .target = choice_target(evaluation.task, kMapTasks),
       .group = kMapGroup});
  list.push_back(
      {.name = "--truth",
       .type_name = "PATH",
       .help =
           "A folder of maps named as the images: depths as .npy, .pfm or PNG of 16 bits, classes as PNG; or "
           "COCO's panoptic annotations, a .json file; with --classifier what vit fit --truth takes",
       .target = text_target(evaluation.truth),
       .group = kMapGroup});
  list.push_back({.name = "--truth-scale",
                  .type_name = "N",
                  .help = "Integer units per metre in the ground truth (KITTI: 256)",
                  .target = parsed_target(
                      evaluation.truth_scale,
                      [](const std::string& value) { return parse_real(value, 1e-6, 1e9); }, "1000"),
                  .group = kMapGroup});
  list.push_back({.name = "--depth-limits",
                  .type_name = "MIN,MAX",
                  .help = "Depths of the ground truth that count, in metres",
                  .target = parsed_target(evaluation.limits, parse_limits),
                  .group = kMapGroup});
  list.push_back(
      {.name = "--align",
       .type_name = "RULE",
       .help =
           "How each prediction is first aligned with its ground truth: none, median (scale), affine (scale "
           "and shift; of inverse depth if the model gives that); auto: none for metres, else affine",
       .target = choice_target(evaluation.align, kAligns),
       .group = kMapGroup});
  list.push_back(
      {.name = "--ignore-index",
       .type_name = "N",
       .help = "Class index that marks unlabeled pixels",
       .target = parsed_target(
           evaluation.ignored,
           [](const std::string& value) { return parse_integer(value, 0, (1u << 24) - 1); }, "255"),
       .group = kMapGroup});
  list.push_back({.name = "--upsample",
                  .type_name = "FILE",
                  .help = "The learned upsampler of --classifier, if it is no longer where it was",
                  .target = text_target(evaluation.upsampler),
                  .group = kMapGroup});
  list.push_back({.name = "--reduce-labels",
                  .type_name = "",
                  .help = "Numbers of classes count from 1, and 0 is none, as ADE20K has them",
                  .flag = &evaluation.reduce,
                  .group = kMapGroup});
}

class MapMeasure : public Measure {
 public:
  void add_options(std::vector<Option>& list, CommonOptions& common) override {
    add_map_options(list, options_);
    add_dense_options(list, common.model_options.dense);
  }

  bool is_requested() const override {
    if (options_.task == MapTask::none && options_.has_options())
      fail_usage("--truth and what belongs to it are for --task depth and segment");
    return options_.task != MapTask::none;
  }

  const char* excludes() const override {
    return "--task compares maps; it takes no option of classes, scales and anomalies";
  }

  bool takes_classifier() const override { return options_.task == MapTask::segment; }

  int run(const EvaluateRun& evaluation) override {
    check_options();
    if (evaluation.classifier.empty() && !options_.upsampler.empty())
      fail_usage("--upsample is for the learned upsampler of --classifier HEAD");
    if (!evaluation.classifier.empty()) return evaluate_pixels(options_, evaluation);
    MapRun work(options_, evaluation);
    const std::vector<std::string> folder{evaluation.folder.string()};
    std::istringstream none;
    const bool is_panoptic = options_.truth.extension() == ".json";
    const std::filesystem::path pictures = is_panoptic ? PanopticTruth::folder_of(options_.truth) : "";
    return run_images({.name = "evaluate",
                       .common = evaluation.common,
                       .list = [&] { return list_inputs(folder, none); },
                       .reads = {options_.truth, pictures, evaluation.common.model_options.dense.head}},
                      work);
  }

 private:
  void check_options() const {
    if (options_.truth.empty()) fail_usage("--task needs --truth, the maps to compare with");
    const bool depth = options_.task == MapTask::depth;
    if (depth && (options_.ignored || options_.reduce))
      fail_usage("--ignore-index and --reduce-labels are for --task segment");
    if (!depth && (options_.truth_scale || options_.limits || options_.align != AlignChoice::automatic))
      fail_usage("--truth-scale, --depth-limits and --align are for --task depth");
  }

  MapEvaluation options_;
};

}  // namespace

std::shared_ptr<Measure> map_measure() {
  return std::make_shared<MapMeasure>();
}

}  // namespace vit::app
