// vit anomaly score: images and frames of videos against a bank.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <utility>

#include "apps/vit/commands/anomaly/anomaly.h"
#include "apps/vit/commands/anomaly/map_files.h"
#include "apps/vit/commands/show/patch_layout.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/video.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/image_run.h"
#include "apps/vit/run/interrupt.h"
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

/// Prints results, and keeps what the page and the maps show.
class Results {
 public:
  Results(const AnomalyCommandOptions& options, const AnomalyModel& bank, const Model& model)
      : options_(options), bank_(bank), patch_size_(model.config().patch_size) {
    if (!options.maps.empty()) maps_.emplace(options.maps, options.map_formats);
  }

  /// `source`: makes the image where an overlay needs it.
  void add(const std::string& name, const ImageOutputs& outputs, ImageSize size, const SourceMap& map,
           const std::function<Image()>& source) {
    AnomalyResult result = bank_.score(outputs, options_.common.session.threads);
    if (options_.threshold) result.threshold = static_cast<float>(*options_.threshold);
    if (maps_) {
      const Tensor<float> pixels = anomaly_map(result.distances, size, map, patch_size_, options_.sigma);
      // the threshold has the color in the middle, so that pictures can be compared
      const double scale = result.threshold && *result.threshold > 0
                               ? 2 * static_cast<double>(*result.threshold)
                               : static_cast<double>(*std::ranges::max_element(pixels.flat()));
      maps_->write(name, pixels, scale, maps_->has("overlay") ? source() : Image());
    }
    print_result(options_.format == PrintFormat::json ? as_json(name, result) : as_text(name, result));
    if (!options_.html.empty()) {
      PageItem item = named_item(name);
      item.score = result.score;
      if (const auto anomalous = result.is_anomalous())
        item.labels.push_back({.name = *anomalous ? "anomalous" : "good", .score = result.score});
      items_.push_back(std::move(item));
    }
  }

  /// The page, the highest score first.
  void write_page(std::span<const Input> inputs, std::optional<float> threshold) {
    std::ranges::stable_sort(items_, std::greater{}, [](const PageItem& item) { return *item.score; });
    HtmlPage page{.title = "vit anomaly score", .facts = {count_of(items_.size(), "image")}};
    if (threshold) page.facts.push_back(text("threshold ", *threshold));
    page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(items_)});
    write_run_page(options_.html, std::move(page), inputs, options_.common);
  }

 private:
  const AnomalyCommandOptions& options_;
  const AnomalyModel& bank_;
  std::size_t patch_size_;
  std::optional<MapFolder> maps_;
  std::vector<PageItem> items_;
};

/// The frames of a video, named VIDEO[0], VIDEO[1], ...
void score_video(const std::string& path, const AnomalyCommandOptions& options, const AnomalyModel& bank,
                 const ImageRun& run, Results& results) {
  Video video(path);
  Session session(run.model_pointer(), options.common.session);
  const Request request = bank.request(run.model());
  Outputs outputs;
  Image frame;
  for (std::size_t i = 0; !interrupted() && video.read(frame, options.common.model_options.max_pixels); ++i) {
    session.run(frame, request, outputs);
    results.add(text(path, "[", i, "]"), outputs[0], frame.size(),
                session.preprocessor().source_map(frame.size()), [&] { return to_rgb(frame); });
  }
}

}  // namespace

int score_anomalies(AnomalyCommandOptions& options) {
  const AnomalyModel bank = load_bank(options.bank, options.common);
  std::vector<std::string> videos;
  std::ranges::copy_if(options.inputs, std::back_inserter(videos), has_video_extension);
  std::erase_if(options.inputs, has_video_extension);
  InputList list = list_inputs(options.inputs, std::cin);
  if (options.shard) take_shard(list, *options.shard);
  std::vector<std::filesystem::path> others(videos.begin(), videos.end());
  others.push_back(options.bank);
  confine(options.common, list.inputs, std::move(others), {options.maps, options.html});
  ImageRun run("anomaly score", options.common);
  const Request request = bank.request(run.model());
  check_html(options.html, list.inputs, options.common);
  Results results(options, bank, run.model());
  run.start(std::move(list));
  run.for_each_sized(request, [&](const StreamedImage& image) {
    const Input& input = run.inputs()[image.index];
    run.progress().clear();
    const SourceMap map = input.pixels ? SourceMap{} : run.preprocessor().source_map(image.size);
    return failure_of([&] {
      results.add(input.name, *image.outputs, image.size, map,
                  [&] { return image_of_input(input, run.preprocessor()); });
    });
  });
  for (const std::string& video : videos) {
    if (interrupted()) break;
    const std::string failure = failure_of([&] { score_video(video, options, bank, run, results); });
    if (!failure.empty()) run.progress().add_failed(video, failure);
  }
  const int code = run.finish();
  if (!options.html.empty()) results.write_page(run.inputs(), bank.threshold());
  return code;
}

}  // namespace vit::app
