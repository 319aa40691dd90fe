// The Open Inference Protocol, version 2, over HTTP with JSON or binary tensors, for clients of KServe and
// Triton: preprocessed pixels, image files or texts in; vectors or logits out. And the description of all
// routes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/routes/binary_tensors.h"
#include "apps/vit/rings/serve/routes/infer_input.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/version.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

constexpr std::string_view kInferenceModels = "/v2/models/";
constexpr std::string_view kInfer = "/infer", kReady = "/ready";
constexpr const char* kPixelTensor = "pixels";
constexpr const char* kEmbeddingTensor = "embedding";
constexpr const char* kLogitsTensor = "logits";

/// NAME and what follows it of /v2/models/NAME[/versions/VERSION][/ready|/infer].
struct ModelPath {
  std::string name, verb;
};
ModelPath parse_path(std::string_view path) {
  path.remove_prefix(kInferenceModels.size());
  ModelPath out;
  for (const std::string_view verb : {kInfer, kReady}) {
    if (path.ends_with(verb) && path.size() > verb.size()) {
      out.verb = verb;
      path.remove_suffix(verb.size());
      break;
    }
  }
  out.name = without_escapes(path.substr(0, path.find("/versions/")));
  return out;
}

/// Whether the request asks for logits; by default it gets the vector.
bool wants_logits(const Json& body, const ModelFacts& facts) {
  const std::optional<Json> outputs = body.find("outputs");
  std::string name;
  for (std::size_t i = 0; outputs && outputs->is_array() && i < outputs->size(); ++i) {
    const std::string one = find_text((*outputs)[i], "name").value_or("");
    if (!name.empty() && one != name)
      throw ApiError(400, "outputs: one of embedding and logits a request", "outputs", "invalid_value");
    name = one;
  }
  if (name.empty()) name = facts.embedding_dim > 0 ? kEmbeddingTensor : kLogitsTensor;
  if (name != kEmbeddingTensor && name != kLogitsTensor)
    throw ApiError(400, "outputs: there are embedding and logits", "outputs", "invalid_value");
  const bool is_there = name == kLogitsTensor ? facts.config->head.num_classes > 0 : facts.embedding_dim > 0;
  if (!is_there) throw ApiError(400, "this model has no " + name, "outputs", "unsupported_input");
  return name == kLogitsTensor;
}

HttpResponse infer_response(const Work& work, const std::string& model, const std::string& id,
                            bool is_binary) {
  check_items(work, "inputs[0]");
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("model_name", model).member("model_version", "1");
  if (!id.empty()) json.member("id", id);
  json.key("outputs").begin_array().begin_object();
  json.member("name", work.wanted == Wanted::classes ? kLogitsTensor : kEmbeddingTensor)
      .member("datatype", "FP32");
  json.array("shape", std::array{work.items.size(), work.items.front().values.size()});
  if (is_binary) {
    std::vector<float> numbers;
    for (const WorkItem& item : work.items)
      numbers.insert(numbers.end(), item.values.begin(), item.values.end());
    json.key("parameters").begin_object().member("binary_data_size", numbers.size() * sizeof(float));
    json.end_object().end_object().end_array().end_object();
    return binary_response(std::move(out.body), numbers);
  }
  json.key("data").begin_array();
  for (const WorkItem& item : work.items) {
    for (const float value : item.values) json.value(value);
  }
  json.end_array().end_object().end_array().end_object();
  return out;
}

constexpr std::string_view kInferMembers[]{"id", "inputs", "outputs", "parameters"};

void answer_infer(Service& service, const std::shared_ptr<Call>& call) {
  const ModelPath path = parse_path(call->request.path);
  if (path.verb != kInfer)
    throw ApiError(404, "there is nothing at this path: /v2/models/NAME/infer", {}, "not_found");
  InferBody infer(call->request, service.options().max_body, kMaxInferNumbers + kMaxJsonValues);
  const Json& body = infer.json();
  check_members(body, kInferMembers);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, path.name);
  const ServedModel& model = service.models()[work->model];
  try {
    work->items = read_infer_input(infer, {.num_channels = model.facts().config->image.num_channels,
                                           .max_inputs = service.options().max_inputs});
  } catch (const Error& error) {
    throw ApiError(400, std::string(error.message()), "inputs", "invalid_value");
  }
  if (wants_logits(body, model.facts())) work->wanted = Wanted::classes;
  const bool are_pixels = !work->items.front().pixels.empty();
  if (!are_pixels) service.check_takes(work->model, work->items);
  const std::string id = find_text(body, "id").value_or("");
  const bool is_binary = wants_binary(body);
  call->request.body = {};
  service.run(call, work, [&model, id, is_binary](const Work& done) {
    return infer_response(done, model.name(), id, is_binary);
  });
}

void answer_inference_server(Service& /*service*/, const std::shared_ptr<Call>& call) {
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("name", "vit").member("version", version()).key("extensions").begin_array();
  json.value("binary_tensor_data").end_array().end_object();
  call->respond(std::move(out));
}

void answer_inference_probe(Service& service, const std::shared_ptr<Call>& call) {
  const bool is_live = call->request.path.ends_with("live");
  call->respond({.status = is_live || service.is_ready() ? 200u : 503u, .body = "{}"});
}

/// Metadata of a tensor; -1 = any number.
void write_tensor(JsonWriter& json, const char* name, const char* type,
                  std::initializer_list<std::int64_t> shape) {
  json.begin_object().member("name", name).member("datatype", type).array("shape", shape).end_object();
}

void answer_inference_model(Service& service, const std::shared_ptr<Call>& call) {
  const ModelPath path = parse_path(call->request.path);
  const ServedModel& model = service.models()[service.find_model(*call, path.name)];
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("name", model.name());
  if (path.verb == kReady) {
    json.member("ready", true).end_object();
    return call->respond(std::move(out));
  }
  const ModelFacts& facts = model.facts();
  const auto size = [](std::size_t count) { return static_cast<std::int64_t>(count); };
  json.key("versions").begin_array().value("1").end_array().member("platform", "vit");
  json.key("inputs").begin_array();
  write_tensor(json, kPixelTensor, "FP32", {-1, size(facts.config->image.num_channels), -1, -1});
  if (facts.no_images.empty()) write_tensor(json, kImageTensor, "BYTES", {-1});
  if (facts.no_texts.empty()) write_tensor(json, kTextTensor, "BYTES", {-1});
  json.end_array().key("outputs").begin_array();
  if (facts.embedding_dim > 0) write_tensor(json, kEmbeddingTensor, "FP32", {-1, size(facts.embedding_dim)});
  if (facts.config->head.num_classes > 0)
    write_tensor(json, kLogitsTensor, "FP32", {-1, size(facts.config->head.num_classes)});
  json.end_array().end_object();
  call->respond(std::move(out));
}

// ------------------------------------------------------------------------------------------ the description

void write_operation(JsonWriter& json, const Route& route, bool has_keys) {
  const bool is_post = route.method == "POST";
  json.key(is_post ? "post" : "get").begin_object();
  if (!route.summary.empty()) json.member("summary", route.summary);
  if (route.takes_rest) {
    json.key("parameters").begin_array().begin_object();
    json.member("name", "name").member("in", "path").member("required", true);
    json.key("schema").begin_object().member("type", "string").end_object().end_object().end_array();
  }
  if (is_post) {
    json.key("requestBody").begin_object().member("required", true).key("content").begin_object();
    json.key(route.dialect == Dialect::immich ? "multipart/form-data" : "application/json").begin_object();
    json.key("schema").begin_object().member("type", "object").end_object();
    json.end_object().end_object().end_object();
  }
  if (route.needs_key && has_keys) {
    json.key("security").begin_array().begin_object().key("key").begin_array().end_array();
    json.end_object().end_array();
  }
  json.key("responses").begin_object();
  json.key("200").begin_object().member("description", "The result").end_object();
  json.key("400").begin_object().member("description", "The defect of the request").end_object();
  json.end_object().end_object();
}

/// OpenAPI 3.1, of the tables of routes.
void answer_openapi(Service& service, const std::shared_ptr<Call>& call) {
  const auto path_of = [](const Route& route) {
    return std::string(route.path) + (route.takes_rest ? "{name}" : "");
  };
  std::vector<std::string> paths;
  for (const Route& route : service.routes()) {
    if (std::ranges::find(paths, path_of(route)) == paths.end()) paths.push_back(path_of(route));
  }
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("openapi", "3.1.0").key("info").begin_object();
  json.member("title", "vit serve").member("version", version()).end_object();
  json.key("components").begin_object().key("securitySchemes").begin_object().key("key").begin_object();
  json.member("type", "http").member("scheme", "bearer").end_object().end_object().end_object();
  json.key("paths").begin_object();
  for (const std::string& path : paths) {
    json.key(path).begin_object();
    for (const Route& route : service.routes()) {
      if (path_of(route) == path) write_operation(json, route, service.has_keys());
    }
    json.end_object();
  }
  json.end_object().end_object();
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"GET", "/v2", Dialect::weaviate, false, false, answer_inference_server},
    {"GET", "/v2/health/live", Dialect::weaviate, false, false, answer_inference_probe},
    {"GET", "/v2/health/ready", Dialect::weaviate, false, false, answer_inference_probe},
    {"GET", kInferenceModels, Dialect::weaviate, true, true, answer_inference_model, true},
    {.method = "POST",
     .path = kInferenceModels,
     .dialect = Dialect::weaviate,
     .needs_key = true,
     .is_work = true,
     .answer = answer_infer,
     .takes_rest = true,
     .summary = "Open Inference Protocol: /v2/models/NAME/infer"},
    {"GET", "/openapi.json", Dialect::openai, false, false, answer_openapi},
};

}  // namespace

std::span<const Route> inference_routes() {
  return kRoutes;
}

}  // namespace vit::app
