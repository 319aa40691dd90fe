// Anomalies by a bank, the nearest images of an index, and features of images: the commands anomaly score,
// search and embed --features for what a request brings.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/features.h"
#include "apps/vit/rings/serve/routes/lines.h"
#include "apps/vit/rings/serve/routes/task_routes.h"
#include "apps/vit/rings/serve/work/member_names.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

// -------------------------------------------------------------------------------------------------- anomaly

void answer_anomaly(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOptions[]{"format", "threshold", "sigma"};
  const TaskCall task = begin_task(
      service, call, "anomaly", kOptions, [](const ServedModel& model) { return model.bank() != nullptr; },
      "bank of good images: vit serve --model NAME=BANK.safetensors");
  const AnomalyAsked asked{.form = read_map_form(task.body),
                           .threshold = find_number(task.body, "threshold", 0, 1e6),
                           .sigma = find_number(task.body, "sigma", 0, 1000).value_or(4.0)};
  run_task(task, task_work(task, task.served().bank()->task(task.preprocessor(), asked)));
}

// --------------------------------------------------------------------------------------------------- search

constexpr std::size_t kSearchTop = 10, kMostFound = 10'000, kMostNumbers = 1'000'000;  // top: as vit search

void write_matches(JsonWriter& json, std::size_t index, std::span<const ImageIndex::Match> matches) {
  json.begin_object().member("index", index).key("results").begin_array();
  for (std::size_t i = 0; i < matches.size(); ++i) {
    json.begin_object().member("rank", i + 1).member("file", matches[i].file);
    json.member("score", matches[i].score).end_object();
  }
  json.end_array().end_object();
}

struct SearchAsked {
  std::size_t top = kSearchTop;
  bool each = false, as_lines = false;
  std::string parameters{};
};

std::vector<std::vector<ImageIndex::Match>> matches_of(const ServedModel& model,
                                                       std::vector<std::vector<float>> vectors,
                                                       const SearchAsked& asked) {
  try {
    return model.index()->nearest(std::move(vectors), asked.each, asked.top, asked.parameters);
  } catch (const UsageError& error) {
    throw ApiError(400, of_members(error.what()), "parameters", "invalid_value");
  }
}

HttpResponse search_response(const Work& work, const ServedModel& model, const SearchAsked& asked) {
  check_items(work, "input");
  std::vector<std::vector<float>> vectors;
  for (const WorkItem& item : work.items) vectors.push_back(item.values);
  const auto found = matches_of(model, std::move(vectors), asked);
  if (!asked.as_lines)
    return data_response("search", model.name(), found.size(),
                         [&](JsonWriter& json, std::size_t i) { write_matches(json, i, found[i]); });
  HttpResponse out{.content_type = kLinesType};
  for (std::size_t i = 0; i < found.size(); ++i) {
    JsonWriter json(out.body);
    write_matches(json, i, found[i]);
    out.body += "\n";
  }
  return out;
}

void answer_search(Service& service, const std::shared_ptr<Call>& call) {
  check_name(service, *call);
  constexpr std::string_view kOptions[]{"text", "top", "each", "parameters"};
  const TaskCall task = begin_task(
      service, call, "search", kOptions, [](const ServedModel& model) { return model.index() != nullptr; },
      "index: vit serve --model NAME=FOLDER.index, or --index");
  SearchAsked asked{.top = find_count(task.body, "top", kMostFound).value_or(kSearchTop),
                    .each = find_flag(task.body, "each").value_or(false),
                    .as_lines = wants_lines(call->request),
                    .parameters = find_text(task.body, "parameters").value_or("")};
  const auto work = std::make_shared<Work>();
  work->model = task.model;
  const bool has_inputs = task.body.find("input") || task.body.find("messages") || has_lines(call->request);
  if (has_inputs && task.body.find("text"))
    throw ApiError(400, "input and text exclude each other", "text", "invalid_input");
  work->items =
      has_inputs ? read_inputs(call->request, task.body, StringMeaning::image, service.options().max_inputs)
                 : read_texts(task.body, "text", service.options().max_inputs);
  if (asked.each && asked.top * work->items.size() > kMostNumbers)
    throw ApiError(400, vit::text("top times inputs is more than ", kMostNumbers), "top", "too_many_inputs");
  service.check_takes(task.model, work->items);
  call->request.body = {};
  service.run(call, work, [&model = task.served(), asked](const Work& done) {
    return search_response(done, model, asked);
  });
}

// ------------------------------------------------------------------------------------------------- features

/// The outputs that vit embed --features names, each a .npy in base64.
class FeatureTask : public OutputTask {
 public:
  explicit FeatureTask(std::string list) : list_(std::move(list)) {}

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    try {
      features_ = parse_features(list_, *model);
    } catch (const UsageError& error) {
      fail(Where{"features", ErrorKind::argument}, of_members(error.what()));
    }
    return features_.request;
  }

  void write(JsonWriter& json, const ImageOutputs& outputs, const WorkItem& item,
             std::size_t index) const override {
    const std::vector<ResultArray> arrays = features_.arrays(outputs);
    const std::vector<std::string> names = features_.names();
    json.begin_object().member("index", index).member("width", item.image_size.width);
    json.member("height", item.image_size.height).key("features").begin_object();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      std::vector<std::size_t> shape;
      for (std::size_t k = 0; k < arrays[i].shape.rank(); ++k) shape.push_back(arrays[i].shape[k]);
      write_npy(json, names[i], "<f4", shape, arrays[i].bytes());
    }
    json.end_object().end_object();
  }

 private:
  std::string list_;
  FeatureList features_;
};

void answer_features(Service& service, const std::shared_ptr<Call>& call) {
  constexpr std::string_view kOptions[]{"features", "format"};
  constexpr std::string_view kForms[]{"npy"};
  constexpr std::size_t kMostFeatures = 64;
  const TaskCall task = begin_task(
      service, call, "features", kOptions,
      [](const ServedModel& model) { return model.facts().no_images.empty(); }, "preprocessing of images");
  find_word(task.body, "format", kForms);
  std::string list;
  for (const std::string& name : find_list(task.body, "features", kMostFeatures))
    list += (list.empty() ? "" : ",") + name;
  run_task(task, task_work(task, std::make_shared<FeatureTask>(std::move(list))));
}

constexpr Route kRoutes[]{
    {.method = "POST",
     .path = "/v1/anomaly",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_anomaly,
     .summary = "Whether images differ from good ones: vit anomaly score"},
    {.method = "POST",
     .path = "/v1/search",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_search,
     .summary = "The nearest images of an index: vit search"},
    {.method = "POST",
     .path = "/v1/features",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = true,
     .answer = answer_features,
     .summary = "Features of patches, tokens and blocks: vit embed --features"},
};

}  // namespace

std::span<const Route> task_routes() {
  return kRoutes;
}

}  // namespace vit::app
