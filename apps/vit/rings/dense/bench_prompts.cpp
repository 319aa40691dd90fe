// vit bench --phrase: what a look at an image costs, and each further phrase or click.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/heap.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/peak_memory.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/machine.h"
#include "vit/prompts.h"

namespace vit::app {
namespace {

using BenchClock = std::chrono::steady_clock;
constexpr std::size_t kInstances = 20;  // whose masks are made

template <typename Work>
double milliseconds_of(const Work& work) {
  const auto start = BenchClock::now();
  work();
  return std::chrono::duration<double>(BenchClock::now() - start).count() * 1e3;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// An image of smooth areas, edges and fine stripes, the same in every run.
Image bench_picture(std::size_t edge) {
  Image image(edge, edge);
  for (std::size_t y = 0; y < edge; ++y) {
    for (std::size_t x = 0; x < edge; ++x) {
      const double u = static_cast<double>(x) / static_cast<double>(edge),
                   v = static_cast<double>(y) / static_cast<double>(edge);
      const bool is_inside =
          std::hypot(u - 0.35, v - 0.4)<0.22, is_striped = u> 0.7 && (x / 8 + y / 8) % 2 == 0;
      const double values[]{is_inside ? 230.0 : 255.0 * u, is_striped ? 20.0 : 255.0 * v,
                            128.0 + 100.0 * std::sin(14.0 * u) * std::cos(9.0 * v)};
      for (std::size_t c = 0; c < 3; ++c)
        image.data()[(y * edge + x) * 3 + c] = static_cast<std::uint8_t>(std::clamp(values[c], 0.0, 255.0));
    }
  }
  return image;
}

/// Masks of the first measurement, with which those of others are compared.
struct ReferenceMasks {
  std::vector<std::size_t> queries;  // with the highest scores
  Tensor<float> masks;               // (Q, h, w)
};

/// Intersection over union of the pixels above 0, of each of the reference's best queries.
JsonValue compare_masks(const PromptLogits& found, const ReferenceMasks& reference) {
  double sum = 0, least = 1;
  for (const std::size_t query : reference.queries) {
    const auto a = found.masks.view()[query].flat(), b = reference.masks.view()[query].flat();
    std::size_t both = 0, any = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      both += a[i] > 0 && b[i] > 0 ? 1u : 0u;
      any += a[i] > 0 || b[i] > 0 ? 1u : 0u;
    }
    const double iou = any == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(any);
    sum += iou;
    least = std::min(least, iou);
  }
  return {{"masks", reference.queries.size()},
          {"mean", sum / static_cast<double>(reference.queries.size())},
          {"least", least}};
}

std::vector<std::size_t> best_queries(const PromptLogits& logits) {
  std::vector<std::size_t> out(logits.classes.num_elements());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [&](std::size_t query) { return logits.classes.data()[query]; });
  out.resize(std::min(out.size(), kInstances));
  return out;
}

class PromptMeter {
 public:
  PromptMeter(std::shared_ptr<const PromptModel> model, const PromptBench& options)
      : options_(options), segmenter_(std::move(model), {.threads = options.threads}) {}

  JsonValue measure(std::optional<ReferenceMasks>& reference) {
    const PromptModel& model = segmenter_.model();
    const Image picture = bench_picture(model.image()->config().image.height);
    look(picture);
    ask();
    const double first = looks_.front() + phrases_.front();
    const auto begin = BenchClock::now();
    do {  // interleaved: the load of the machine is that of both
      ask();
      ask();
      look(picture);
    } while (std::chrono::duration<double>(BenchClock::now() - begin).count() < options_.seconds);
    const double of_image = median_of(looks_), of_phrase = median_of(phrases_);
    JsonValue out{{"height", picture.view().size().height},
                  {"width", picture.view().size().width},
                  {"batch", 1},
                  {"ms_per_image", of_image},
                  {"ms_min", *std::ranges::min_element(looks_)},
                  {"ms_per_phrase", of_phrase},
                  {"ms_first", first},
                  {"percent_of_first", 100.0 * of_phrase / (of_image + of_phrase)},
                  {"instances", num_instances_},
                  {"features_bytes", image_->bytes()}};
    if (const auto memory = peak_memory_bytes()) out["peak_memory_bytes"] = *memory;
    if (model.takes(PromptUse::objects)) out["ms_per_click"] = measure_clicks(picture);
    const PromptLogits logits = segmenter_.logits(*image_, {.text = options_.phrase});
    if (reference) {
      out["iou_with_first"] = compare_masks(logits, *reference);
    } else {
      reference.emplace(ReferenceMasks{best_queries(logits), Tensor<float>(logits.masks.shape())});
      std::ranges::copy(logits.masks.flat(), reference->masks.data());
    }
    return out;
  }

 private:
  void look(const Image& picture) {
    image_.reset();
    looks_.push_back(milliseconds_of([&] { image_ = segmenter_.encode(picture.view()); }));
  }
  /// A phrase that was not asked before, so that its text is computed.
  void ask() {
    const Prompt prompt{.text = text(options_.phrase, " ", phrases_.size())};
    phrases_.push_back(milliseconds_of([&] {
      num_instances_ =
          segmenter_.segment(*image_, prompt, {.threshold = 0.0, .max_instances = kInstances}).scores.size();
    }));
  }
  double measure_clicks(const Image& picture) {
    const auto image = segmenter_.encode(picture.view(), PromptUse::objects);
    const auto edge = static_cast<double>(picture.view().size().width);
    std::vector<double> clicks;
    for (int i = 1; i <= 5; ++i)
      clicks.push_back(milliseconds_of(
          [&] { segmenter_.segment_object(*image, {.points = {{.x = edge * i / 7, .y = edge * i / 9}}}); }));
    return median_of(clicks);
  }

  const PromptBench& options_;
  PromptSegmenter segmenter_;
  std::shared_ptr<const PromptFeatures> image_;
  std::vector<double> looks_, phrases_;
  std::size_t num_instances_ = 0;
};

std::shared_ptr<const PromptModel> bench_prompt_model(const CommonOptions& common) {
  return common.is_architecture_alone()
             ? PromptModel::random(common.model_options.architecture, common.model_options)
             : PromptModel::load(model_path(common), common.model_options, text_options(common));
}

std::string lines_of_prompts(const JsonValue& result) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  const auto number = [&](const char* name) { return result[name].get<double>(); };
  char line[512];
  std::snprintf(line, sizeof line,
                "%s  %.0fx%.0f  threads %d  image %.0f ms  further phrase %.0f ms, %.1f %%",
                result["dtype"].get<std::string>().c_str(), number("height"), number("width"),
                result["threads"].get<int>(), number("ms_per_image"), number("ms_per_phrase"),
                number("percent_of_first"));
  std::string out = line + text(" of the first, ", result["instances"].get<std::size_t>(), " masks");
  if (result.contains("ms_per_click")) {
    std::snprintf(line, sizeof line, "  click %.0f ms", number("ms_per_click"));
    out += line;
  }
  std::snprintf(line, sizeof line, "\n    weights %.0f MiB  features of an image %.0f MiB",
                number("weights_bytes") / kMebibyte, number("features_bytes") / kMebibyte);
  out += line;
  if (result.contains("peak_memory_bytes")) {
    std::snprintf(line, sizeof line, "  peak %.0f MiB", number("peak_memory_bytes") / kMebibyte);
    out += line;
  }
  if (result.contains("iou_with_first")) {
    const JsonValue& iou = result["iou_with_first"];
    std::snprintf(line, sizeof line, "  IoU of masks with those of the first type %.4f, least %.4f",
                  iou["mean"].get<double>(), iou["least"].get<double>());
    out += line;
  }
  return out + "\n";
}

/// All weights in the precision of blocks; some of the detector's are float32 in any.
double weights_bytes(const PromptModel& model) {
  const Precision precision = model.image()->precision();
  const double bytes = precision == Precision::float32 ? 4.0 : precision == Precision::bfloat16 ? 2.0 : 1.0;
  return bytes * static_cast<double>(model.num_parameters());
}

}  // namespace

int bench_prompts(const CommonOptions& common, const PromptBench& options) {
  JsonValue results = JsonValue::array();
  std::optional<ReferenceMasks> reference;
  for (const Precision precision : options.precisions) {
    return_free_memory();
    reset_peak_memory();
    CommonOptions variant = common;
    variant.model_options.precision = precision;
    const std::shared_ptr<const PromptModel> model = bench_prompt_model(variant);
    JsonValue result{{"model", common.is_architecture_alone() ? common.model_options.architecture
                                                              : model_path(common).string()},
                     {"dtype", to_string(precision)},
                     {"kernels", model->image()->kernels()},
                     {"threads", num_threads(options.threads)},
                     {"phrase", options.phrase},
                     {"weights_bytes", weights_bytes(*model)}};
    result.update(PromptMeter(model, options).measure(reference));
    if (!options.as_json) print_result(lines_of_prompts(result));
    results.push_back(std::move(result));
  }
  if (options.as_json)
    print_result(
        JsonValue{{"machine", options.machine}, {"results", results}}.dump(internal::JsonLayout::indented) +
        "\n");
  return 0;
}

}  // namespace vit::app
