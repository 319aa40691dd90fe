// vit anomaly score: images and frames of videos against a bank.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "apps/vit/commands/anomaly/anomaly.h"
#include "apps/vit/commands/anomaly/map_files.h"
#include "apps/vit/commands/show/patch_layout.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

std::string as_json(const std::string& file, const AnomalyResult& result) {
  std::string out = "{\"file\": " + json_string(file) + ", \"score\": ";
  append_json_float(out, result.score);
  out += ", \"threshold\": ";
  if (result.threshold) {
    append_json_float(out, *result.threshold);
  } else {
    out += "null";
  }
  const std::optional<bool> anomalous = result.is_anomalous();
  return out + ", \"anomalous\": " + (!anomalous ? "null" : *anomalous ? "true" : "false") + "}\n";
}

std::string as_text(const std::string& file, const AnomalyResult& result) {
  char number[32];
  std::snprintf(number, sizeof number, "%10.6f  ", static_cast<double>(result.score));
  const std::optional<bool> anomalous = result.is_anomalous();
  return number +
         std::string(!anomalous   ? ""
                     : *anomalous ? "anomalous  "
                                  : "good       ") +
         printable(file) + "\n";
}

class Scoring : public ImageWork {
 public:
  explicit Scoring(AnomalyCommandOptions& options)
      : options_(options), bank_(load_bank(options.bank, options.common)) {}

  std::optional<Request> load(ImageRun& run) override {
    const Model& model = *run.load();
    patch_size_ = model.config().patch_size;
    expand_videos(run.list(), options_.common.model_options.max_pixels);
    if (options_.shard) take_shard(run.list(), *options_.shard);
    if (!options_.maps.empty()) maps_.emplace(options_.maps, options_.map_formats, run.inputs());
    return bank_.request(model);
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    run.progress().clear();
    return failure_of([&] { judge(run, run.inputs()[image.index], image); });
  }

  /// Writes the page, the highest score first.
  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (options_.html.empty()) return 0;
    std::ranges::stable_sort(items_, std::greater{}, [](const PageItem& item) { return *item.score; });
    HtmlPage page{.title = "vit anomaly score", .facts = {count_of(items_.size(), "image")}};
    if (const std::optional<float> used = threshold()) page.facts.push_back(text("threshold ", *used));
    page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(items_)});
    write_run_page(options_.html, std::move(page), run.inputs(), options_.common);
    return 0;
  }

 private:
  std::optional<float> threshold() const {
    return options_.threshold ? std::optional(static_cast<float>(*options_.threshold)) : bank_.threshold();
  }

  /// Prints a result and keeps what the page and the maps show.
  void judge(const ImageRun& run, const Input& input, const StreamedImage& image) {
    AnomalyResult result = bank_.score(*image.outputs, options_.common.session.threads);
    result.threshold = threshold();
    if (maps_) {
      const SourceMap map = input.pixels ? SourceMap{} : run.preprocessor().source_map(image.size);
      const Tensor<float> pixels =
          anomaly_map(result.distances, image.size, map, patch_size_, options_.sigma);
      // the threshold has the color in the middle, so that pictures can be compared
      const double scale = result.threshold && *result.threshold > 0
                               ? 2 * static_cast<double>(*result.threshold)
                               : static_cast<double>(*std::ranges::max_element(pixels.flat()));
      maps_->write(input.name, pixels, scale,
                   maps_->has("overlay") ? image_of_input(input, run.preprocessor()) : Image());
    }
    print_result(options_.format == PrintFormat::json ? as_json(input.name, result)
                                                      : as_text(input.name, result));
    if (options_.html.empty()) return;
    PageItem item = named_item(input.name);
    item.score = result.score;
    if (const auto anomalous = result.is_anomalous())
      item.labels.push_back({.name = *anomalous ? "anomalous" : "good", .score = result.score});
    items_.push_back(std::move(item));
  }

  AnomalyCommandOptions& options_;
  const AnomalyModel bank_;
  std::size_t patch_size_ = 0;
  std::optional<AnomalyMaps> maps_;
  std::vector<PageItem> items_;
};

}  // namespace

int score_anomalies(AnomalyCommandOptions& options) {
  Scoring work(options);
  return run_images({.name = "anomaly score",
                     .common = options.common,
                     .inputs = options.inputs,
                     .reads = {options.bank},
                     .files = {options.html},
                     .writes = {options.maps}},
                    work);
}

}  // namespace vit::app
