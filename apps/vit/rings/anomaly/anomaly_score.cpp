// vit anomaly score: images and frames of videos against a bank.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/outputs/drawing.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/patch_layout.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/outputs/result_names.h"
#include "apps/vit/rings/anomaly/anomaly.h"
#include "apps/vit/rings/anomaly/anomaly_results.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {
namespace {

std::string as_json(const std::string& file, const AnomalyResult& result) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_anomaly(json, result);
  json.end_object();
  return out + "\n";
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
    patch_size_ = model.config().patch.size;
    expand_videos(run.list(), options_.common.model_options.max_pixels);
    if (!options_.maps.empty()) prepare_maps(run.inputs());
    if (options_.shard) {
      take_shard(names_, *options_.shard);
      take_shard(run.list(), *options_.shard);
    }
    return bank_.request(model);
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    run.progress().clear();
    return failure_of([&] { judge(run, image); });
  }

  /// Writes the page, the highest score first.
  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (options_.html.empty()) return 0;
    std::ranges::stable_sort(items_, std::greater{}, [](const PageItem& item) { return *item.score; });
    HtmlPage page{.title = "vit anomaly score", .facts = {count_of(items_.size(), "image")}};
    if (const std::optional<float> used = threshold()) page.facts.push_back(text("threshold ", *used));
    page.is_sorted = true;
    set_failures(page, run.progress());
    page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(items_)});
    write_run_page(options_.html, std::move(page), run.inputs(), options_.common);
    return 0;
  }

 private:
  std::optional<float> threshold() const {
    return options_.threshold ? std::optional(static_cast<float>(*options_.threshold)) : bank_.threshold();
  }

  bool writes(std::string_view word) const {
    return !options_.maps.empty() &&
           (options_.map_formats.empty() ||
            std::ranges::find(options_.map_formats, word) != options_.map_formats.end());
  }

  /// Names the maps as those of the whole run, and makes their folder. Throws Error for pictures in a build
  /// without OpenCV, and UsageError where a map would replace the file of an input or another map.
  void prepare_maps(std::span<const Input> inputs) {
    if (writes("color") || writes("overlay")) check_can_draw();
    names_ = result_names(inputs);
    std::vector<std::string_view> endings;
    for (const AnomalyMapFormat& format : kAnomalyMapFormats) {
      if (writes(format.word)) endings.push_back(format.ending);
    }
    check_result_files("--maps", options_.maps, names_, endings, inputs);
    make_folder(options_.maps);
  }

  /// Writes the map (H, W) of an input in each format. `highest`: the value that has the last color.
  void write_maps(const ImageRun& run, std::size_t index, TensorView<const float> map, double highest) const {
    for (const AnomalyMapFormat& format : kAnomalyMapFormats) {
      if (!writes(format.word)) continue;
      const std::filesystem::path path = result_path(options_.maps, names_[index], format.ending);
      if (format.word == "npy") {
        write_npy(path, map);
      } else if (format.word == "color") {
        write_png(path, draw_colors(map, 0, highest, nullptr));
      } else {
        const Image source = image_of_input(run.inputs()[index], run.preprocessor());
        write_png(path, draw_colors(map, 0, highest, &source));
      }
    }
  }

  /// Prints a result and keeps what the page and the maps show.
  void judge(const ImageRun& run, const StreamedImage& image) {
    const Input& input = run.inputs()[image.index];
    AnomalyResult result = bank_.score(*image.outputs, options_.common.session.threads);
    result.threshold = threshold();
    if (!options_.maps.empty()) {
      const AnomalyPixels pixels = anomaly_pixels(
          result, image.size, input.pixels ? nullptr : &run.preprocessor(), patch_size_, options_.sigma);
      write_maps(run, image.index, pixels.map, pixels.highest);
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
  std::vector<std::filesystem::path> names_;  // of maps
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
