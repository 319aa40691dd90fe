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
#include "apps/vit/outputs/output_file.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
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

/// The state of a run.
class Scoring {
 public:
  explicit Scoring(AnomalyCommandOptions& options)
      : options_(options), bank_(load_bank(options.bank, options.common)) {
    std::ranges::copy_if(options.inputs, std::back_inserter(videos_), has_video_extension);
    std::erase_if(options.inputs, has_video_extension);
  }

  /// The bank and the videos.
  std::vector<std::filesystem::path> other_files() const {
    std::vector<std::filesystem::path> files(videos_.begin(), videos_.end());
    files.push_back(options_.bank);
    return files;
  }

  /// Images; videos follow them, also where a part of all is taken.
  InputList list() {
    InputList list = list_inputs(options_.inputs, std::cin);
    if (!options_.shard) return list;
    const std::size_t num_images = list.inputs.size(), size = num_images + videos_.size();
    const std::size_t begin = options_.shard->begin(size), end = options_.shard->end(size);
    keep(list.inputs, std::min(begin, num_images), std::min(end, num_images));
    keep(videos_, std::max(begin, num_images) - num_images, std::max(end, num_images) - num_images);
    return list;
  }

  Request load(ImageRun& run) {
    const Model& model = *run.load();
    patch_size_ = model.config().patch_size;
    request_ = bank_.request(model);
    if (!options_.maps.empty()) maps_.emplace(options_.maps, options_.map_formats, run.inputs());
    return request_;
  }

  std::string add(ImageRun& run, const StreamedImage& image) {
    const Input& input = run.inputs()[image.index];
    run.progress().clear();
    const SourceMap map = input.pixels ? SourceMap{} : run.preprocessor().source_map(image.size);
    return failure_of([&] {
      judge(input.name, *image.outputs, image.size, map,
            [&] { return image_of_input(input, run.preprocessor()); });
    });
  }

  /// Scores the videos, and writes the page, the highest score first.
  int finish(ImageRun& run) {
    for (const std::string& video : videos_) {
      if (interrupted()) break;
      const std::string failure = failure_of([&] { add_video(video, run); });
      if (!failure.empty()) run.progress().add_failed(video, failure);
    }
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
  template <typename T>
  static void keep(std::vector<T>& list, std::size_t begin, std::size_t end) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(end), list.end());
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  std::optional<float> threshold() const {
    return options_.threshold ? std::optional(static_cast<float>(*options_.threshold)) : bank_.threshold();
  }

  /// Prints a result and keeps what the page and the maps show. `source` makes the image where an overlay
  /// needs it.
  void judge(const std::string& name, const ImageOutputs& outputs, ImageSize size, const SourceMap& map,
             const std::function<Image()>& source) {
    AnomalyResult result = bank_.score(outputs, options_.common.session.threads);
    result.threshold = threshold();
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

  /// The frames of a video, named VIDEO[0], VIDEO[1], ...
  void add_video(const std::string& path, const ImageRun& run) {
    Video video(path);
    Session session(run.model_pointer(), options_.common.session);
    Outputs outputs;
    Image frame;
    const std::size_t max_pixels = options_.common.model_options.max_pixels;
    for (std::size_t i = 0; !interrupted() && video.read(frame, max_pixels); ++i) {
      session.run(frame, request_, outputs);
      judge(text(path, "[", i, "]"), outputs[0], frame.size(),
            session.preprocessor().source_map(frame.size()), [&] { return to_rgb(frame); });
    }
  }

  AnomalyCommandOptions& options_;
  const AnomalyModel bank_;
  std::vector<std::string> videos_;
  Request request_;
  std::size_t patch_size_ = 0;
  std::optional<AnomalyMaps> maps_;
  std::vector<PageItem> items_;
};

}  // namespace

int score_anomalies(AnomalyCommandOptions& options) {
  if (!options.html.empty()) check_output_place(options.html);
  Scoring work(options);
  return run_images(
      {.name = "anomaly score",
       .common = options.common,
       .list = [&] { return work.list(); },
       .reads = work.other_files(),
       .writes = {options.maps, options.html}},
      [&](ImageRun& run) { return work.load(run); },
      [&](ImageRun& run, const StreamedImage& image) { return work.add(run, image); },
      [&](ImageRun& run) { return work.finish(run); });
}

}  // namespace vit::app
