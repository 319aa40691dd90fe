// Weaviate's module multi2vec-clip.
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;

/// The model that vectorizes: the first that takes images and texts, else the first.
std::size_t vectorizing_model(const Service& service, const Call& call) {
  return service.first_model(call, [](const ServedModel& model) {
    return model.facts().no_texts.empty() && model.facts().no_images.empty();
  });
}

/// Throws an ApiError that names the input by its own list.
void check_vectors(const Work& work, std::size_t num_texts) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const WorkItem& item = work.items[i];
    if (item.failure.empty()) continue;
    const std::string place =
        item.is_text ? vit::text("texts[", i, "]: ") : vit::text("images[", i - num_texts, "]: ");
    throw ApiError(item.kind == ErrorKind::io ? 503 : 400, place + item.failure);
  }
}

HttpResponse vectors_response(const Work& work, std::size_t num_texts) {
  check_vectors(work, num_texts);
  std::string texts, images;
  for (const WorkItem& item : work.items) {
    std::string& list = item.is_text ? texts : images;
    std::vector<float> vector = item.values;  // of length one, as the module gives those of CLIP
    normalize_vector(vector);
    list += (list.empty() ? "" : ",") + json_vector(vector);
  }
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().key("textVectors").json("[" + texts + "]").key("imageVectors").json("[" + images + "]");
  json.end_object();
  return out;
}

constexpr std::string_view kMembers[]{"texts", "images"};

void answer_vectorize(Service& service, const std::shared_ptr<Call>& call) {
  const Json body = read_json_body(call->request.body, service.options().max_body);
  check_members(body, kMembers);
  const auto work = std::make_shared<Work>();
  work->model = vectorizing_model(service, *call);
  const std::size_t num_texts = read_weaviate_inputs(body, work->items, service.options().max_inputs);
  service.check_takes(work->model, work->items);
  call->request.body = {};
  service.run(call, work, [num_texts](const Work& done) { return vectors_response(done, num_texts); });
}

void answer_probe(Service& service, const std::shared_ptr<Call>& call) {
  const bool is_live = call->request.path.ends_with("live");
  call->respond({.status = is_live || service.is_ready() ? 204u : 503u, .content_type = ""});
}

void answer_meta(Service& service, const std::shared_ptr<Call>& call) {
  const ServedModel& model = service.models()[vectorizing_model(service, *call)];
  const ModelFacts& facts = model.facts();
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("model_name", model.name()).member("architecture", facts.config->architecture);
  json.member("family", facts.config->family).member("projection_dim", facts.embedding_dim);
  json.member("image_size", facts.config->image.height).end_object();
  call->respond(std::move(out));
}

constexpr Route kRoutes[]{
    {"POST", "/vectorize", Dialect::weaviate, true, true, answer_vectorize},
    {"GET", "/.well-known/live", Dialect::weaviate, false, false, answer_probe},
    {"GET", "/.well-known/ready", Dialect::weaviate, false, false, answer_probe},
    {"GET", "/meta", Dialect::weaviate, true, true, answer_meta},
};

}  // namespace

std::span<const Route> weaviate_routes() {
  return kRoutes;
}

}  // namespace vit::app
