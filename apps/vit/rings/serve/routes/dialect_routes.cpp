// Embeddings as the clients of other servers ask for them: text-embeddings-inference, infinity, ollama,
// Weaviate's img2vec-neural. Vectors are of length one where theirs are.
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/embeddings.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;
using internal::JsonWriter;

/// [[...], [...]]
void write_vectors(JsonWriter& json, const Work& work, const VectorFormat& format) {
  json.begin_array();
  for (const WorkItem& item : work.items) write_vector(json, item.values, format);
  json.end_array();
}

/// The texts of a member, a string or a list of them, as work of a model with texts.
std::shared_ptr<Work> text_work(const Service& service, const Call& call, const Json& body,
                                std::string_view member) {
  auto work = std::make_shared<Work>();
  work->model = service.find_model(call, find_text(body, "model"));
  work->items = read_texts(body, member, service.options().max_inputs);
  service.check_takes(work->model, work->items);
  return work;
}

// ------------------------------------------------------------------------------- text-embeddings-inference

constexpr std::string_view kTeiMembers[]{
    "inputs", "normalize", "truncate", "model", "prompt_name", "truncation_direction", "dimensions"};

void answer_tei(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kTeiMembers);
  const auto work = text_work(service, *call, body, "inputs");
  const bool may_cut = find_flag(body, "truncate").value_or(false);
  VectorFormat format = read_dimensions(body, service.models()[work->model].facts());
  format.is_normalized = find_flag(body, "normalize").value_or(true);
  call->request.body = {};
  service.run(call, work, [format, may_cut](const Work& done) -> HttpResponse {
    check_items(done, "inputs");
    if (!may_cut) check_uncut(done, "inputs", "truncate");
    HttpResponse out;
    JsonWriter json(out.body);
    write_vectors(json, done, format);
    return out;
  });
}

// ------------------------------------------------------------------------------------------------- ollama

constexpr std::string_view kOllamaMembers[]{"model",      "input",      "truncate", "options",
                                            "keep_alive", "dimensions", "stream"};

void answer_ollama(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kOllamaMembers);
  const auto work = text_work(service, *call, body, "input");
  const bool may_cut = find_flag(body, "truncate").value_or(true);
  const ServedModel& model = service.models()[work->model];
  VectorFormat format = read_dimensions(body, model.facts());
  format.is_normalized = true;
  call->request.body = {};
  const auto start = std::chrono::steady_clock::now();
  service.run(call, work, [&model, format, may_cut, start](const Work& done) -> HttpResponse {
    check_items(done, "input");
    if (!may_cut) check_uncut(done, "input", "truncate");
    std::size_t num_tokens = 0;
    for (const WorkItem& item : done.items) num_tokens += item.num_tokens;
    const auto time = std::chrono::steady_clock::now() - start;
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    HttpResponse out;
    JsonWriter json(out.body);
    json.begin_object().member("model", model.name()).key("embeddings");
    write_vectors(json, done, format);
    json.member("total_duration", nanoseconds).member("load_duration", 0);
    json.member("prompt_eval_count", num_tokens).end_object();
    return out;
  });
}

// --------------------------------------------------------------------------------- Weaviate's img2vec-neural

constexpr std::string_view kImageMembers[]{"id", "image"};

/// The module names no model: the first that gives vectors of images, else the first.
std::size_t image_model(const Service& service, const Call& call) {
  return service.first_model(call, [](const ServedModel& model) {
    return model.facts().no_images.empty() && model.facts().embedding_dim > 0;
  });
}

void answer_image_vector(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kImageMembers);
  const std::string id = find_text(body, "id").value_or("");
  const std::optional<std::string> image = find_text(body, "image");
  if (!image) throw ApiError(400, "image is missing", "image", "missing");
  const auto work = std::make_shared<Work>();
  work->model = image_model(service, *call);
  if (service.models()[work->model].facts().embedding_dim == 0)
    throw ApiError(400, "this model has no vector of an image", "model", "unsupported_input");
  work->items.push_back(image_item(*image, "image"));
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, [id](const Work& done) -> HttpResponse {
    check_items(done, "image");
    const std::vector<float>& vector = done.items.front().values;
    HttpResponse out;
    JsonWriter json(out.body);
    json.begin_object().member("id", id).key("vector").json(json_vector(vector));
    json.member("dim", vector.size()).member("error", "").end_object();
    return out;
  });
}

void answer_infinity_images(Service& service, const std::shared_ptr<Call>& call) {
  answer_embeddings_of(service, call, StringMeaning::image);
}

constexpr Route kRoutes[]{
    {"POST", "/embed", Dialect::openai, true, true, answer_tei},
    {"POST", "/embeddings_image", Dialect::openai, true, true, answer_infinity_images},
    {"POST", "/api/embed", Dialect::openai, true, true, answer_ollama},
    {"POST", "/vectors", Dialect::weaviate, true, true, answer_image_vector},
};

}  // namespace

std::span<const Route> dialect_routes() {
  return kRoutes;
}

}  // namespace vit::app
