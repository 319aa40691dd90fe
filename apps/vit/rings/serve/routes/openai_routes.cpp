// OpenAI's interface: embeddings and models, and classes in the same manner.
#include <algorithm>
#include <bit>
#include <cstring>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/http/base64.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr std::size_t kMaxDimensions = 65536, kMaxTop = 1'000'000;
constexpr std::size_t kTop = 5;  // as vit classify
/// `user` is what OpenAI's clients may add for its logs.
constexpr std::string_view kEmbeddingsMembers[]{"model",           "input",      "messages",   "modality",
                                                "encoding_format", "dimensions", "normalized", "user"};
constexpr std::string_view kClassifyMembers[]{
    "model", "input", "messages", "modality", "top_k", "candidate_labels", "template", "user"};

/// How vectors are written.
struct VectorFormat {
  bool is_base64 = false;
  std::size_t dimensions = 0;  // 0: all
  bool is_normalized = false;
};

VectorFormat read_format(const Json& body, const ModelFacts& facts) {
  VectorFormat out;
  const std::string encoding = find_text(body, "encoding_format").value_or("float");
  if (encoding != "float" && encoding != "base64")
    throw ApiError(400, "encoding_format must be float or base64", "encoding_format", "invalid_value");
  out.is_base64 = encoding == "base64";
  out.is_normalized = find_flag(body, "normalized").value_or(false);
  if (const std::optional<std::size_t> dimensions = find_count(body, "dimensions", kMaxDimensions)) {
    const bool may_cut = *dimensions < facts.embedding_dim &&
                         std::ranges::find(facts.dimensions, *dimensions) != facts.dimensions.end();
    if (*dimensions != facts.embedding_dim && !may_cut)
      throw ApiError(400,
                     vit::text("dimensions: the vectors of this model have ", facts.embedding_dim,
                               " numbers; it was not trained to be cut to ", *dimensions),
                     "dimensions", "invalid_value");
    out.dimensions = *dimensions;
  }
  return out;
}

void write_vector(JsonWriter& json, std::vector<float> values, const VectorFormat& format) {
  if (format.dimensions != 0) values.resize(format.dimensions);
  if (format.is_normalized) normalize_vector(values);
  if (!format.is_base64) {
    json.json(json_vector(values));
    return;
  }
  static_assert(std::endian::native == std::endian::little, "base64 is of little-endian numbers");
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  json.value(encode_base64(bytes));
}

HttpResponse embeddings_response(const Work& work, const std::string& model, const VectorFormat& format) {
  check_items(work, "input");
  std::size_t num_tokens = 0;
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "list").member("model", model).key("data").begin_array();
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    json.begin_object().member("object", "embedding").member("index", i).key("embedding");
    write_vector(json, work.items[i].values, format);
    json.end_object();
    num_tokens += work.items[i].num_tokens;
  }
  json.end_array().key("usage").begin_object();
  json.member("prompt_tokens", num_tokens).member("total_tokens", num_tokens).end_object().end_object();
  return out;
}

void answer_embeddings(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kEmbeddingsMembers);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(find_text(body, "model"));
  const ServedModel& model = service.models()[work->model];
  if (model.facts().embedding_dim == 0)
    throw ApiError(400, "this model has no vector of an image", "model", "unsupported_input");
  const VectorFormat format = read_format(body, model.facts());
  work->items = read_openai_inputs(body, StringMeaning::text);
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work,
              [&model, format](const Work& done) { return embeddings_response(done, model.name(), format); });
}

// ------------------------------------------------------------------------------------------------ classes

/// The classes that the request names; nothing where it names none.
std::optional<ClassTexts> read_classes(const Json& body, const ModelFacts& facts) {
  std::optional<ClassTexts> out = read_class_texts(body);
  if (!out && !facts.config.has_classes())
    throw ApiError(400, "this model has no classes; send candidate_labels", "candidate_labels", "missing");
  if (!out) return out;
  if (!facts.no_texts.empty()) throw ApiError(400, facts.no_texts, "candidate_labels", "unsupported_input");
  if (out->templates.empty()) out->templates.emplace_back(kDefaultTemplate);
  return out;
}

/// How values become the classes of an answer.
struct ClassFormat {
  std::string model;
  std::vector<std::string> names;
  ClassActivation activation = ClassActivation::softmax;
  std::size_t top = kTop;
};

HttpResponse classes_response(const Work& work, const ClassFormat& format) {
  check_items(work, "input");
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "classify").member("model", format.model).key("data").begin_array();
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    json.begin_object().member("index", i).key("labels").begin_array();
    for (const Prediction& prediction :
         ClassSelection(format.top).of(work.items[i].values, format.names, format.activation)) {
      json.begin_object()
          .member("label", prediction.label)
          .member("score", prediction.probability)
          .end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out;
}

void answer_classify(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kClassifyMembers);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(find_text(body, "model"));
  work->wanted = Wanted::classes;
  const ServedModel& model = service.models()[work->model];
  const ModelFacts& facts = model.facts();
  work->classes = read_classes(body, facts);
  ClassFormat format{.model = model.name(),
                     .names = work->classes ? work->classes->names : facts.labels,
                     .activation = work->classes ? facts.score_kind : class_activation(facts.config),
                     .top = find_count(body, "top_k", kMaxTop).value_or(kTop)};
  work->items = read_openai_inputs(body, StringMeaning::image);
  for (std::size_t i = 0; i < work->items.size(); ++i) {
    if (work->items[i].is_text)
      throw ApiError(400, "classes are of images", vit::text("input[", i, "]"), "unsupported_input");
  }
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work,
              [format = std::move(format)](const Work& done) { return classes_response(done, format); });
}

// ------------------------------------------------------------------------------------------------- models

void write_model(JsonWriter& json, const ServedModel& model) {
  const ModelFacts& facts = model.facts();
  json.begin_object().member("id", model.name()).member("object", "model").member("created", facts.loaded_at);
  json.member("owned_by", "vit").key("modalities").begin_array();
  if (facts.no_images.empty()) json.value("image");
  if (facts.no_texts.empty()) json.value("text");
  json.end_array().member("embedding_dimensions", facts.embedding_dim);
  json.member("classes", facts.config.has_classes() ? facts.config.head.num_classes : 0);
  json.member("architecture", facts.config.architecture).member("fingerprint", facts.run.fingerprint);
  json.end_object();
}

void answer_models(Service& service, const std::shared_ptr<Call>& call) {
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (const ServedModel& model : service.models()) write_model(json, model);
  json.end_array().end_object();
  call->respond(std::move(out));
}

/// %2F and its like; what is no such escape stays as it is.
std::string without_escapes(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    if (path[i] == '%' && i + 2 < path.size() && digit(path[i + 1]) >= 0 && digit(path[i + 2]) >= 0) {
      out += static_cast<char>(16 * digit(path[i + 1]) + digit(path[i + 2]));
      i += 2;
    } else {
      out += path[i];
    }
  }
  return out;
}

constexpr std::string_view kModels = "/v1/models", kModelPrefix = "/v1/models/";

void answer_model(Service& service, const std::shared_ptr<Call>& call) {
  const std::string name = without_escapes(std::string_view(call->request.path).substr(kModelPrefix.size()));
  HttpResponse out;
  JsonWriter json(out.body);
  write_model(json, service.models()[service.find_model(name)]);
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"POST", "/v1/embeddings", Dialect::openai, true, true, answer_embeddings},
    {"POST", "/v1/classify", Dialect::openai, true, true, answer_classify},
    {"GET", kModels, Dialect::openai, true, true, answer_models},
    {"GET", kModelPrefix, Dialect::openai, true, true, answer_model, true},
};

}  // namespace

std::span<const Route> openai_routes() {
  return kRoutes;
}

}  // namespace vit::app
