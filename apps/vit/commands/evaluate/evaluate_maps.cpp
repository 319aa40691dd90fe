#include "apps/vit/commands/evaluate/measures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/dense/dense_options.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/inputs/truth_maps.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/dense.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
using nlohmann::ordered_json;
namespace {

constexpr Where kWhere{"evaluate", ErrorKind::mismatch};
constexpr const char* kGroup = "Maps";
constexpr double kMillimetres = 1000.0;
constexpr std::size_t kNoClass = 255;

constexpr Named<MapTask> kTasks[]{{"depth", MapTask::depth}, {"segment", MapTask::segment}};
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

/// The map of an image: a file of its name below the truth. Throws Error if there is none.
fs::path truth_of(const fs::path& truth, const fs::path& name, std::span<const char* const> endings) {
  std::error_code error;
  for (const char* const ending : endings) {
    const fs::path path = truth / (name.string() + ending);
    if (fs::is_regular_file(path, error)) return path;
  }
  std::string tried;
  for (const char* const ending : endings) tried += (tried.empty() ? "" : ", ") + std::string(ending);
  fail(kWhere.with(ErrorKind::io), (truth / name).string(), ": no map of this name with the ending ", tried);
}

template <typename T>
void check_size(const Tensor<T>& map, ImageSize image, const fs::path& path) {
  VIT_CHECK(map.dim(0) == image.height && map.dim(1) == image.width, kWhere, path.string(), ": a map of ",
            map.dim(1), " x ", map.dim(0), " pixels for an image of ", image.width, " x ", image.height);
}

// -------------------------------------------------------------------------------------------------------
// depth

DepthAlignment alignment_of(AlignChoice choice, DepthUnit unit) {
  if (choice == AlignChoice::none || (choice == AlignChoice::automatic && unit == DepthUnit::metre))
    return DepthAlignment::none;
  if (choice == AlignChoice::median) {
    if (unit == DepthUnit::inverse)
      fail_usage("--align median is for depths, and this model gives inverse ones");
    return DepthAlignment::median;
  }
  return unit == DepthUnit::inverse ? DepthAlignment::inverse : DepthAlignment::depth;
}

const char* word_of(DepthAlignment alignment) {
  switch (alignment) {
    case DepthAlignment::none: return "none";
    case DepthAlignment::median: return "median";
    case DepthAlignment::depth: return "affine, of depth";
    case DepthAlignment::inverse: return "affine, of inverse depth";
  }
  return "";
}

/// Means over images, each of its own pixels.
class DepthTask {
 public:
  DepthTask(const MapEvaluation& evaluation, const Model& model) : evaluation_(evaluation) {
    const DenseConfig* const config = model.dense_config();
    VIT_CHECK(config != nullptr && config->find(MapMeaning::depth) != nullptr, kWhere,
              model.report().path.string(), " has no head that gives depth");
    config_ = config;
    alignment_ = alignment_of(evaluation.align, config->depth_unit);
  }

  void add(const StreamedImage& image, const fs::path& name, const Preprocessor&, int threads) {
    constexpr const char* kEndings[] = {".npy", ".png", ".pfm", "_depth.png", "_depth.npy"};
    const fs::path path = truth_of(evaluation_.truth, name, kEndings);
    const Tensor<float> truth = read_depth_map(path, evaluation_.truth_scale.value_or(kMillimetres));
    check_size(truth, image.size, path);
    const auto [low, high] =
        evaluation_.limits.value_or(std::array<float, 2>{1e-3f, std::numeric_limits<float>::max()});
    const auto found = measure_depth(depth_of(*image.outputs, *config_, image.size, threads).depth, truth,
                                     alignment_, low, high);
    VIT_CHECK(found, kWhere, path.string(), ": no pixel has a depth between ", low, " and ", high);
    sum_.abs_rel += found->abs_rel;
    sum_.delta1 += found->delta1;
    sum_.rmse += found->rmse;
    sum_.pixels += found->pixels;
    ++count_;
  }

  std::size_t count() const noexcept { return count_; }
  ordered_json result() const {
    const auto images = static_cast<double>(count_);
    return {{"task", "depth"},
            {"images", count_},
            {"abs_rel", sum_.abs_rel / images},
            {"delta1", sum_.delta1 / images},
            {"rmse", sum_.rmse / images},
            {"alignment", word_of(alignment_)},
            {"pixels", sum_.pixels}};
  }
  static std::string as_text(const ordered_json& result) {
    char line[160];
    std::snprintf(line, sizeof line, "AbsRel %.4f, delta1 %.4f, RMSE %.4f of %zu images (alignment: %s)\n",
                  result["abs_rel"].get<double>(), result["delta1"].get<double>(),
                  result["rmse"].get<double>(), result["images"].get<std::size_t>(),
                  result["alignment"].get<std::string>().c_str());
    return line;
  }

 private:
  const MapEvaluation& evaluation_;
  const DenseConfig* config_ = nullptr;
  DepthAlignment alignment_ = DepthAlignment::none;
  DepthMeasures sum_;
  std::size_t count_ = 0;
};

// ----------------------------------------------------------------------------------------------------
// segments

/// COCO's panoptic annotations: the picture and the segments of each image.
class PanopticTruth {
 public:
  /// `labels`: of the model's classes, in whose numbers the annotations are given; "" where it has no names.
  PanopticTruth(const fs::path& path, std::span<const std::string> labels) : path_(path) {
    const Json json = load_json(path, {.max_bytes = kMostBytes});
    const std::map<std::size_t, std::size_t> classes = classes_of(json, labels);
    const Json annotations = json.at("annotations");
    std::map<std::int64_t, std::string> names;  // of images by number
    if (const auto images = json.find("images")) {
      for (std::size_t i = 0; i < images->size(); ++i) {
        const Json image = (*images)[i];
        names[image.at("id").as_integer()] = stem(image.at("file_name").as_string());
      }
    }
    for (std::size_t i = 0; i < annotations.size(); ++i) {
      const Json annotation = annotations[i];
      Entry entry{.picture = std::string(annotation.at("file_name").as_string()), .segments = {}};
      const Json segments = annotation.at("segments_info");
      for (std::size_t s = 0; s < segments.size(); ++s) {
        const Json segment = segments[s];
        const auto crowd = segment.find_size("iscrowd");
        entry.segments.push_back({.id = static_cast<std::int32_t>(segment.at("id").as_size({0, 1u << 24})),
                                  .index = class_of(classes, segment.at("category_id")),
                                  .is_crowd = crowd.value_or(0) != 0});
      }
      const auto image = annotation.find("image_id");
      const auto known = image && image->is_number() ? names.find(image->as_integer()) : names.end();
      std::string name = known != names.end() ? known->second : stem(entry.picture);
      if (image && image->is_string()) name = image->as_string();
      entries_[std::move(name)] = std::move(entry);
    }
    // pictures lie in a folder named as the file, or next to it
    std::error_code error;
    folder_ = path.parent_path() / path.stem();
    if (!fs::is_directory(folder_, error)) folder_ = path.parent_path();
  }

  const std::vector<PanopticSegment>& segments(const fs::path& name) const { return entry(name).segments; }
  /// Ids, -1 = none.
  Tensor<std::int32_t> map(const fs::path& name, ImageSize size) const {
    const fs::path path = folder_ / entry(name).picture;
    Tensor<std::int32_t> out = read_label_map(path);
    check_size(out, size, path);
    for (std::int32_t& id : out.flat()) id = id == 0 ? -1 : id;
    return out;
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  /// The model's class of each category: that of its name, or of its place where no name is a label.
  static std::map<std::size_t, std::size_t> classes_of(const Json& json,
                                                       std::span<const std::string> labels) {
    std::map<std::size_t, std::size_t> by_name, by_place;
    const auto categories = json.find("categories");
    for (std::size_t i = 0; categories && i < categories->size(); ++i) {
      const Json category = (*categories)[i];
      const std::size_t id = category.at("id").as_size({0, 1u << 20});
      by_place[id] = i;
      const auto label = std::ranges::find(labels, category.at("name").as_string());
      if (label != labels.end()) by_name[id] = static_cast<std::size_t>(label - labels.begin());
    }
    return by_name.empty() ? by_place : by_name;
  }
  /// Without categories numbers are the model's.
  static std::size_t class_of(const std::map<std::size_t, std::size_t>& classes, const Json& id) {
    const std::size_t number = id.as_size({0, 1u << 20});
    if (classes.empty()) return number;
    const auto found = classes.find(number);
    VIT_CHECK(found != classes.end(), kWhere, id.where(), ": category ", number,
              " is none of the categories, or has a name that is no label of the model");
    return found->second;
  }

  struct Entry {
    std::string picture;
    std::vector<PanopticSegment> segments;
  };
  static std::string stem(std::string_view file) { return fs::path(file).stem().string(); }
  const Entry& entry(const fs::path& name) const {
    const auto found = entries_.find(name.filename().string());
    VIT_CHECK(found != entries_.end(), kWhere, path_.string(), ": no annotation of an image ", name.string());
    return found->second;
  }

  fs::path path_, folder_;
  std::map<std::string, Entry> entries_;
};

class SegmentEvaluation {
 public:
  SegmentEvaluation(const MapEvaluation& evaluation, const Model& model)
      : evaluation_(evaluation), config_(model.dense_config()) {
    const bool has_masks = config_ != nullptr && config_->find(MapMeaning::masks) != nullptr;
    VIT_CHECK(has_masks || (config_ != nullptr && config_->find(MapMeaning::classes) != nullptr), kWhere,
              model.report().path.string(), " has no head that gives classes");
    const std::size_t classes = has_masks ? config_->find(MapMeaning::mask_classes)->channels - 1
                                          : config_->find(MapMeaning::classes)->channels;
    if (evaluation.truth.extension() == ".json") {
      truth_.emplace(evaluation.truth, config_->labels);
      panoptic_.emplace(classes);
      options_.task = SegmentTask::panoptic;
    }
    classes_.emplace(classes);
  }

  void add(const StreamedImage& image, const fs::path& name, const Preprocessor& preprocessor, int threads) {
    const SegmentMap found = segments_of(*image.outputs, *config_, MaskFrame::of(preprocessor, image.size),
                                         image.size, options_, threads);
    if (panoptic_) {
      std::vector<PanopticSegment> segments;
      for (const Segment& segment : found.segments)
        segments.push_back({.id = segment.id, .index = segment.index});
      panoptic_->add(found.map, segments, truth_->map(name, image.size), truth_->segments(name));
    } else {
      constexpr const char* kEndings[] = {".png"};
      const fs::path path = truth_of(evaluation_.truth, name, kEndings);
      Tensor<std::int32_t> truth = read_label_map(path);
      check_size(truth, image.size, path);
      const auto ignored = static_cast<std::int32_t>(evaluation_.ignored.value_or(kNoClass));
      for (std::int32_t& index : truth.flat()) {
        if (index == ignored) index = -1;
        if (evaluation_.reduce && index >= 0) --index;  // of 0 none
      }
      classes_->add(found.map, truth);
    }
    ++count_;
  }

  std::size_t count() const noexcept { return count_; }
  ordered_json result() const {
    ordered_json out{{"task", "segment"}, {"images", count_}};
    ordered_json rows = ordered_json::array();
    const std::size_t classes =
        panoptic_ ? config_->find(MapMeaning::mask_classes)->channels - 1 : num_classes();
    if (panoptic_) {
      const PanopticScores::Quality mean = panoptic_->mean();
      out.update({{"pq", mean.quality}, {"sq", mean.segmentation}, {"rq", mean.recognition}});
    } else {
      out.update({{"miou", classes_->mean_iou()}, {"accuracy", classes_->accuracy()}});
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const std::string label = c < config_->labels.size() ? config_->labels[c] : std::to_string(c);
      if (panoptic_) {
        if (const auto quality = panoptic_->of_class(c))
          rows.push_back({{"index", c}, {"label", label}, {"pq", quality->quality}});
      } else if (const auto iou = classes_->iou(c)) {
        rows.push_back({{"index", c}, {"label", label}, {"iou", *iou}});
      }
    }
    out["classes"] = std::move(rows);
    return out;
  }
  static std::string as_text(const ordered_json& result) {
    char line[160];
    const bool panoptic = result.contains("pq");
    if (panoptic) {
      std::snprintf(line, sizeof line, "PQ %.2f %%, SQ %.2f %%, RQ %.2f %% of %zu images\n",
                    100 * result["pq"].get<double>(), 100 * result["sq"].get<double>(),
                    100 * result["rq"].get<double>(), result["images"].get<std::size_t>());
    } else {
      std::snprintf(line, sizeof line, "mIoU %.2f %%, accuracy %.2f %% of %zu images\n",
                    100 * result["miou"].get<double>(), 100 * result["accuracy"].get<double>(),
                    result["images"].get<std::size_t>());
    }
    std::string out = line;
    for (const ordered_json& row : result["classes"]) {
      std::snprintf(line, sizeof line, "  %6.2f %%  ", 100 * row[panoptic ? "pq" : "iou"].get<double>());
      out += line + printable(row["label"].get<std::string>()) + "\n";
    }
    return out;
  }

 private:
  std::size_t num_classes() const {
    const MapOutput* const classes = config_->find(MapMeaning::classes);
    return classes != nullptr ? classes->channels : config_->find(MapMeaning::mask_classes)->channels - 1;
  }

  const MapEvaluation& evaluation_;
  const DenseConfig* config_;
  SegmentOptions options_;
  std::optional<PanopticTruth> truth_;
  std::optional<PanopticScores> panoptic_;
  std::optional<ClassScores> classes_;
  std::size_t count_ = 0;
};

/// A run of a Task, which compares the maps of one image after the other.
template <typename Task>
class MapComparison : public ImageWork {
 public:
  explicit MapComparison(const MapEvaluation& evaluation, int threads)
      : evaluation_(evaluation), threads_(threads) {}

  std::optional<Request> load(ImageRun& run) override {
    names_ = result_names(run.inputs());
    task_.emplace(evaluation_, *run.load());
    Request request;
    request.set_maps();
    return request;
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] { task_->add(image, names_[image.index], run.preprocessor(), threads_); });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (interrupted()) return 0;
    VIT_CHECK(task_->count() > 0, "evaluate", evaluation_.folder.string(), ": no image could be evaluated");
    ordered_json result = task_->result();
    result["failed"] = run.progress().num_failed();
    result["seconds"] = run.progress().seconds();
    print_result(evaluation_.as_json
                     ? result.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                     : Task::as_text(result));
    return 0;
  }

 private:
  const MapEvaluation& evaluation_;
  const int threads_;
  std::vector<fs::path> names_;
  std::optional<Task> task_;
};

template <typename Task>
int run_task(const MapEvaluation& evaluation, const CommonOptions& common) {
  MapComparison<Task> work(evaluation, common.session.threads);
  const std::vector<std::string> folder{evaluation.folder.string()};
  std::istringstream none;
  return run_images({.name = "evaluate",
                     .common = common,
                     .list = [&] { return list_inputs(folder, none); },
                     .reads = {evaluation.truth, common.model_options.dense.head}},
                    work);
}

}  // namespace

void add_map_options(std::vector<Option>& list, MapEvaluation& evaluation) {
  list.push_back(
      {.name = "--task",
       .type_name = "TASK",
       .help = "depth (AbsRel, delta1, RMSE) or segment (mIoU, or PQ): compare maps of the images below "
               "FOLDER with --truth",
       .target = choice_target(evaluation.task, kTasks),
       .group = kGroup});
  list.push_back(
      {.name = "--truth",
       .type_name = "PATH",
       .help = "A folder of maps named as the images: depths as .npy, .pfm or PNG of 16 bits, classes as "
               "PNG; or COCO's panoptic annotations, a .json file",
       .target = text_target(evaluation.truth),
       .group = kGroup});
  list.push_back({.name = "--truth-scale",
                  .type_name = "N",
                  .help = "Numbers of integers that are a metre: 256 of KITTI",
                  .target = parsed_target(
                      evaluation.truth_scale,
                      [](const std::string& value) { return parse_real(value, 1e-6, 1e9); }, "1000"),
                  .group = kGroup});
  list.push_back({.name = "--depth-limits",
                  .type_name = "MIN,MAX",
                  .help = "Depths of the truth that count, in metres",
                  .target = parsed_target(evaluation.limits, parse_limits),
                  .group = kGroup});
  list.push_back(
      {.name = "--align",
       .type_name = "RULE",
       .help = "What is fitted to each image's truth first: none, median (a factor), affine (factor and "
               "offset; of inverse depth where the model gives that); auto: none for metres, else affine",
       .target = choice_target(evaluation.align, kAligns),
       .group = kGroup});
  list.push_back(
      {.name = "--ignore-index",
       .type_name = "N",
       .help = "Number of pixels without a class",
       .target = parsed_target(
           evaluation.ignored,
           [](const std::string& value) { return parse_integer(value, 0, (1u << 24) - 1); }, "255"),
       .group = kGroup});
  list.push_back({.name = "--reduce-labels",
                  .type_name = "",
                  .help = "Numbers of classes count from 1, and 0 is none, as ADE20K has them",
                  .flag = &evaluation.reduce,
                  .group = kGroup});
}

int evaluate_maps(const MapEvaluation& evaluation, CommonOptions common) {
  if (evaluation.truth.empty()) fail_usage("--task needs --truth, the maps to compare with");
  const bool depth = evaluation.task == MapTask::depth;
  if (depth && (evaluation.ignored || evaluation.reduce))
    fail_usage("--ignore-index and --reduce-labels are for --task segment");
  if (!depth && (evaluation.truth_scale || evaluation.limits || evaluation.align != AlignChoice::automatic))
    fail_usage("--truth-scale, --depth-limits and --align are for --task depth");
  return depth ? run_task<DepthTask>(evaluation, common) : run_task<SegmentEvaluation>(evaluation, common);
}

}  // namespace vit::app
