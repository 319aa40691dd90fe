// vit evaluate --task segment: classes of pixels, or panoptic segments.
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/dense/map_comparison.h"
#include "apps/vit/rings/dense/panoptic_truth.h"
#include "apps/vit/rings/dense/truth_maps.h"
#include "vit/dense.h"

namespace vit::app {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNoClass = 255;

/// Classes of a model: with masks the last of `mask_classes` is none.
std::size_t num_classes_of(const DenseConfig& config) {
  return config.find(Output::masks) != nullptr ? config.find(Output::mask_classes)->channels - 1
                                               : config.find(Output::classes)->channels;
}

/// What is compared of a class, for those that have it.
template <typename Value>
JsonValue class_rows(const DenseConfig& config, const char* name, const Value& measure) {
  JsonValue rows = JsonValue::array();
  for (std::size_t c = 0; c < num_classes_of(config); ++c) {
    const std::optional<double> value = measure(c);
    if (!value) continue;
    const std::string label = c < config.labels.size() ? config.labels[c] : std::to_string(c);
    rows.push_back({{"index", c}, {"label", label}, {name, *value}});
  }
  return rows;
}

/// "  12.34 %  LABEL" of each class.
std::string rows_as_text(const JsonValue& result, const char* name) {
  char number[32];
  std::string out;
  for (const JsonValue& row : result["classes"]) {
    std::snprintf(number, sizeof number, "  %6.2f %%  ", 100 * row[name].get<double>());
    out += number + printable(row["label"].get<std::string>()) + "\n";
  }
  return out;
}

/// The class of each pixel.
class ClassComparison : public MapComparison {
 public:
  ClassComparison(const MapEvaluation& evaluation, const DenseConfig& config, int threads)
      : evaluation_(evaluation), config_(config), threads_(threads), scores_(num_classes_of(config)) {}

  void add(const StreamedImage& image, const fs::path& name) override {
    const SegmentMap found = segments_of(*image.outputs, {}, threads_);
    constexpr const char* kEndings[] = {".png"};
    const fs::path path = find_truth_map(evaluation_.truth, name, kEndings);
    Tensor<std::int32_t> truth = read_class_map(path);
    check_map_size(truth.shape(), image.size, path);
    const auto ignored = static_cast<std::int32_t>(evaluation_.ignored.value_or(kNoClass));
    const auto num_classes = static_cast<std::int32_t>(num_classes_of(config_));
    for (std::int32_t& index : truth.flat()) {
      if (index == ignored) index = -1;
      if (evaluation_.reduce && index >= 0) --index;  // of 0 none
      VIT_CHECK(index < num_classes, (Where{"evaluate", ErrorKind::mismatch}), path.string(),
                ": holds class ", index, ", but the model has the classes 0 to ", num_classes - 1,
                "; --ignore-index names the index of pixels without a class");
    }
    scores_.add(found.map, truth);
  }

  JsonValue result(std::size_t num_images) const override {
    return {{"task", "segment"},
            {"images", num_images},
            {"miou", scores_.mean_iou()},
            {"accuracy", scores_.accuracy()},
            {"classes", class_rows(config_, "iou", [&](std::size_t c) { return scores_.iou(c); })}};
  }
  std::string as_text(const JsonValue& result) const override {
    char line[160];
    std::snprintf(line, sizeof line, "mIoU %.2f %%, accuracy %.2f %% of %zu images\n",
                  100 * result["miou"].get<double>(), 100 * result["accuracy"].get<double>(),
                  result["images"].get<std::size_t>());
    return line + rows_as_text(result, "iou");
  }

 private:
  const MapEvaluation& evaluation_;
  const DenseConfig& config_;
  const int threads_;
  ClassScores scores_;
};

/// Things and stuff, each with its pixels.
class PanopticComparison : public MapComparison {
 public:
  PanopticComparison(const MapEvaluation& evaluation, const DenseConfig& config, int threads)
      : config_(config),
        threads_(threads),
        truth_(evaluation.truth, config.labels),
        scores_(num_classes_of(config)) {}

  void add(const StreamedImage& image, const fs::path& name) override {
    SegmentOptions options;
    options.task = SegmentTask::panoptic;
    const SegmentMap found = segments_of(*image.outputs, options, threads_);
    std::vector<PanopticSegment> segments;
    for (const Segment& segment : found.segments)
      segments.push_back({.id = segment.id, .index = segment.index});
    scores_.add(found.map, segments, truth_.map(name, image.size), truth_.segments(name));
  }

  JsonValue result(std::size_t num_images) const override {
    const PanopticScores::Quality mean = scores_.mean();
    const auto quality = [&](std::size_t c) -> std::optional<double> {
      const std::optional<PanopticScores::Quality> found = scores_.of_class(c);
      return found ? std::optional(found->quality) : std::nullopt;
    };
    return {{"task", "segment"},      {"images", num_images},
            {"pq", mean.quality},     {"sq", mean.segmentation},
            {"rq", mean.recognition}, {"classes", class_rows(config_, "pq", quality)}};
  }
  std::string as_text(const JsonValue& result) const override {
    char line[160];
    std::snprintf(line, sizeof line, "PQ %.2f %%, SQ %.2f %%, RQ %.2f %% of %zu images\n",
                  100 * result["pq"].get<double>(), 100 * result["sq"].get<double>(),
                  100 * result["rq"].get<double>(), result["images"].get<std::size_t>());
    return line + rows_as_text(result, "pq");
  }

 private:
  const DenseConfig& config_;
  const int threads_;
  PanopticTruth truth_;
  PanopticScores scores_;
};

}  // namespace

std::unique_ptr<MapComparison> compare_segments(const MapEvaluation& evaluation, const Model& model,
                                                int threads) {
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(config != nullptr &&
                (config->find(Output::masks) != nullptr || config->find(Output::classes) != nullptr),
            kMapMismatch, model.report().path.string(), " has no head that gives classes");
  if (evaluation.truth.extension() == ".json")
    return std::make_unique<PanopticComparison>(evaluation, *config, threads);
  return std::make_unique<ClassComparison>(evaluation, *config, threads);
}

}  // namespace vit::app
