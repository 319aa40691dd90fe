// OpenAI's interface: embeddings and models, and classes in the same manner.
#include <algorithm>
#include <bit>
#include <cstring>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/routes/embeddings.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/lines.h"
#include "apps/vit/rings/serve/routes/paint_routes.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr std::size_t kMaxArea = std::size_t{1} << 30, kMaxDimensions = 65536, kMaxTop = 1'000'000;
constexpr std::size_t kTop = 5;  // as vit classify
/// `user` is what OpenAI's clients may add for its logs. Those after it are of vLLM, Jina, Cohere and others:
/// `task`, `input_type` and what follows them choose among prompts of language models, which these models do
/// not have.
constexpr std::string_view kEmbeddingsMembers[]{
    "model",      "input",      "messages",  "modality",       "encoding_format",    "dimensions",
    "normalized", "user",       "normalize", "embedding_type", "truncate",           "mm_processor_kwargs",
    "task",       "input_type", "priority",  "late_chunking",  "add_special_tokens", "truncate_prompt_tokens",
    "request_id"};
constexpr std::string_view kClassifyMembers[]{
    "model", "input", "messages", "modality", "top_k", "candidate_labels", "template", "user"};

VectorFormat read_format(const Json& body, const ModelFacts& facts) {
  VectorFormat out = read_dimensions(body, facts);
  for (const char* const member : {"embedding_type", "encoding_format"}) {
    const std::string encoding = find_text(body, member).value_or("float");
    if (encoding != "float" && encoding != "base64")
      throw ApiError(400, std::string(member) + " must be float or base64", member, "invalid_value");
    out.is_base64 = out.is_base64 || encoding == "base64";
  }
  const std::optional<bool> normalized = find_flag(body, "normalized"),
                            normalize = find_flag(body, "normalize");
  if (normalized && normalize && *normalized != *normalize)
    throw ApiError(400, "normalize and normalized contradict each other", "normalize", "invalid_value");
  out.is_normalized = normalized.value_or(normalize.value_or(false));
  return out;
}

/// Whether texts may be cut to what the model takes, as they are by default: `truncate` true, "END", or
/// false, "NONE".
bool read_truncation(const Json& body) {
  const std::optional<Json> value = body.find("truncate");
  if (!value) return true;
  if (value->is_bool()) return value->as_bool();
  const std::string word = find_text(body, "truncate").value_or("");
  if (word != "END" && word != "NONE")
    throw ApiError(400, "truncate must be true, false, END or NONE", "truncate", "invalid_value");
  return word == "END";
}

void check_has_area(const Service& service, std::size_t model) {
  const std::optional<Preprocessor>& preprocessor = service.options().preprocessors[model];
  if (!preprocessor || preprocessor->config().resize != ResizeRule::area)
    throw ApiError(400, "the images of this model have no limits of area", "mm_processor_kwargs",
                   "invalid_value");
}

/// Limits of an image's area, as processors of transformers take them.
AreaLimits read_area(const Json& body) {
  AreaLimits out;
  const std::optional<Json> options = body.find("mm_processor_kwargs");
  if (!options) return out;
  if (!options->is_object())
    throw ApiError(400, "mm_processor_kwargs must be an object", "mm_processor_kwargs", "invalid_type");
  constexpr std::string_view kKnown[]{"min_pixels", "max_pixels"};
  check_members(*options, kKnown);
  out.least = find_count(*options, "min_pixels", kMaxArea).value_or(0);
  out.most = find_count(*options, "max_pixels", kMaxArea).value_or(0);
  return out;
}

}  // namespace

VectorFormat read_dimensions(const Json& body, const ModelFacts& facts) {
  VectorFormat out;
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

void check_uncut(const Work& work, const std::string& param, std::string_view option) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    if (work.items[i].is_cut)
      throw ApiError(
          400,
          vit::text(param, "[", i, "] is longer than the model takes; ", option, " permits that it is cut"),
          vit::text(param, "[", i, "]"), "too_long");
  }
}

namespace {

void write_embedding(JsonWriter& json, const WorkItem& item, std::size_t index, const VectorFormat& format) {
  json.begin_object().member("object", "embedding").member("index", index).key("embedding");
  write_vector(json, item.values, format);
  json.end_object();
}

/// The answer says how many texts were cut.
void add_cut_header(const Work& work, HttpResponse& response) {
  const auto count = std::ranges::count_if(work.items, [](const WorkItem& item) { return item.is_cut; });
  if (count > 0) response.headers.emplace_back("X-Vit-Truncated", std::to_string(count));
}

HttpResponse embedding_lines(const Work& work, const VectorFormat& format) {
  HttpResponse out = lines_of(work, [&](JsonWriter& json, const WorkItem& item, std::size_t i) {
    write_embedding(json, item, i, format);
  });
  add_cut_header(work, out);
  return out;
}

HttpResponse embeddings_response(const Work& work, const std::string& model, const VectorFormat& format) {
  check_items(work, "input");
  std::size_t num_tokens = 0;
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "list").member("model", model).key("data").begin_array();
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    write_embedding(json, work.items[i], i, format);
    num_tokens += work.items[i].num_tokens;
  }
  json.end_array().key("usage").begin_object();
  json.member("prompt_tokens", num_tokens).member("total_tokens", num_tokens).end_object().end_object();
  add_cut_header(work, out);
  return out;
}

}  // namespace

void answer_embeddings_of(Service& service, const std::shared_ptr<Call>& call, StringMeaning strings) {
  const Json body = read_request(call->request, service.options().max_body);
  check_members(body, kEmbeddingsMembers);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, find_text(body, "model"));
  const ServedModel& model = service.models()[work->model];
  if (model.facts().embedding_dim == 0)
    throw ApiError(400, "this model has no vector of an image", "model", "unsupported_input");
  const VectorFormat format = read_format(body, model.facts());
  const bool may_cut = read_truncation(body), as_lines = wants_lines(call->request);
  work->area = read_area(body);
  if (work->area.least + work->area.most > 0) check_has_area(service, work->model);
  work->items = read_inputs(call->request, body, strings, service.options().max_inputs);
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, [&model, format, may_cut, as_lines](const Work& done) {
    if (!may_cut) check_uncut(done, "input", "truncate");
    return as_lines ? embedding_lines(done, format) : embeddings_response(done, model.name(), format);
  });
}

namespace {

void answer_embeddings(Service& service, const std::shared_ptr<Call>& call) {
  answer_embeddings_of(service, call, StringMeaning::text);
}

// ------------------------------------------------------------------------------------------------ classes

/// The classes that the request names; nothing where it names none.
std::optional<ClassTexts> read_classes(const Json& body, const ModelFacts& facts) {
  std::optional<ClassTexts> out = read_class_texts(body);
  if (!out && !facts.config->has_classes())
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

void write_labels(JsonWriter& json, const WorkItem& item, std::size_t index, const ClassFormat& format) {
  json.begin_object().member("index", index).key("labels").begin_array();
  for (const Prediction& prediction :
       ClassSelection(format.top).of(item.values, format.names, format.activation)) {
    json.begin_object();
    json.member("label", prediction.label).member("score", prediction.probability).end_object();
  }
  json.end_array().end_object();
}

HttpResponse class_lines(const Work& work, const ClassFormat& format) {
  check_classes(work);
  return lines_of(work, [&](JsonWriter& json, const WorkItem& item, std::size_t i) {
    write_labels(json, item, i, format);
  });
}

HttpResponse classes_response(const Work& work, const ClassFormat& format) {
  check_classes(work);
  check_items(work, "input");
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "classify").member("model", format.model).key("data").begin_array();
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    write_labels(json, work.items[i], i, format);
  }
  json.end_array().end_object();
  return out;
}

void answer_classify(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_request(call->request, service.options().max_body);
  check_members(body, kClassifyMembers);
  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, find_text(body, "model"));
  work->wanted = Wanted::classes;
  const ServedModel& model = service.models()[work->model];
  const ModelFacts& facts = model.facts();
  work->classes = read_classes(body, facts);
  ClassFormat format{.model = model.name(),
                     .names = work->classes ? work->classes->names : facts.labels,
                     .activation = work->classes ? facts.score_kind : class_activation(*facts.config),
                     .top = find_count(body, "top_k", kMaxTop).value_or(kTop)};
  work->items = read_inputs(call->request, body, StringMeaning::image, service.options().max_inputs);
  for (std::size_t i = 0; i < work->items.size(); ++i) {
    if (work->items[i].is_text)
      throw ApiError(400, "classes are of images", vit::text("input[", i, "]"), "unsupported_input");
  }
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work,
              [format = std::move(format), as_lines = wants_lines(call->request)](const Work& done) {
                return as_lines ? class_lines(done, format) : classes_response(done, format);
              });
}

// ------------------------------------------------------------------------------------------------- models

void write_model(JsonWriter& json, const Service& service, std::size_t index) {
  const ServedModel& model = service.models()[index];
  const std::optional<Preprocessor>& preprocessor = service.options().preprocessors[index];
  const ModelFacts& facts = model.facts();
  json.begin_object().member("id", model.name()).member("object", "model").member("created", facts.loaded_at);
  json.member("owned_by", "vit").key("modalities").begin_array();
  if (facts.no_images.empty()) json.value("image");
  if (facts.no_texts.empty()) json.value("text");
  json.end_array().member("embedding_dimensions", facts.embedding_dim);
  json.member("classes", facts.config->has_classes() ? facts.config->head.num_classes : 0);
  json.member("architecture", facts.config->architecture).member("fingerprint", facts.run.fingerprint);
  if (preprocessor) json.member("upright", preprocessor->config().apply_orientation);  // by EXIF
  json.key("tasks").begin_array();  // of what the page draws
  const auto has = [&](Output output) { return facts.dense && facts.dense->find(output) != nullptr; };
  if (has(Output::depth)) json.value("depth");
  if (has(Output::classes) || has(Output::masks)) json.value("segment");
  if (facts.takes_phrases) json.value("phrases");
  if (facts.takes_objects) json.value("objects");
  if (model.index() != nullptr) json.value("search");
  if (takes_painting(model)) json.value("paint");
  json.end_array().end_object();
}

void answer_models(Service& service, const std::shared_ptr<Call>& call) {
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (std::size_t i = 0; i < service.models().size(); ++i) {
    if (call->allows_model(service.models()[i].name())) write_model(json, service, i);
  }
  json.end_array().end_object();
  call->respond(std::move(out));
}

constexpr std::string_view kModels = "/v1/models", kModelPrefix = "/v1/models/";

void answer_model(Service& service, const std::shared_ptr<Call>& call) {
  const std::string name = without_escapes(std::string_view(call->request.path).substr(kModelPrefix.size()));
  HttpResponse out;
  JsonWriter json(out.body);
  write_model(json, service, service.find_model(*call, name));
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"POST", "/v1/embeddings", Dialect::openai, true, true, answer_embeddings},
    {"POST", "/embeddings", Dialect::openai, true, true, answer_embeddings},
    {"POST", "/v1/classify", Dialect::openai, true, true, answer_classify},
    {"GET", kModels, Dialect::openai, true, true, answer_models},
    {"GET", kModelPrefix, Dialect::openai, true, true, answer_model, true},
};

}  // namespace

std::span<const Route> openai_routes() {
  return kRoutes;
}

}  // namespace vit::app
