// immich's machine learning service, as its server asks it: one entry of a form says what is wanted of one
// image or text. What is not CLIP is left to another server.
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/http/http_client.h"
#include "apps/vit/rings/serve/http/multipart.h"
#include "apps/vit/rings/serve/routes/immich_entries.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;

const FormPart* find_part(std::span<const FormPart> parts, std::string_view name) {
  for (const FormPart& part : parts) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

/// The answer of the other server to the tasks that are not served here.
HttpResponse ask_upstream(const std::string& upstream, const std::string& entries, const FormPart* image,
                          const FormPart* text, const HttpClientLimits& limits) {
  const std::string boundary = "----vit-6f1c0c5a5f0e4b7d9a3e";
  std::string body;
  const auto add = [&](std::string_view head, std::string_view data) {
    body += vit::text("--", boundary, "\r\nContent-Disposition: form-data; name=", head, "\r\n\r\n");
    body.append(data).append("\r\n");
  };
  add("\"entries\"", entries);
  if (image != nullptr)
    add("\"image\"; filename=\"blob\"\r\nContent-Type: application/octet-stream", image->data);
  if (text != nullptr) add("\"text\"", text->data);
  body += "--" + boundary + "--\r\n";
  return post(parse_http_target(upstream), "/predict", "multipart/form-data; boundary=" + boundary,
              std::move(body), limits);
}

/// Throws Error unless the other server answered with an object of JSON.
void check_upstream(const HttpResponse& answer) {
  const Json json = internal::parse_json(answer.body, "the answer of --immich-upstream");
  json.expect(Json::Kind::object);
}

/// {"clip": "[0.1,...]", "imageHeight": ..., "imageWidth": ...}, with the members of `others`, an object.
HttpResponse clip_response(const Work& work, const std::string& others) {
  const WorkItem& item = work.items.front();
  if (!item.failure.empty()) throw ApiError(item.kind == ErrorKind::io ? 503 : 400, item.failure);
  std::vector<float> vector = item.values;
  normalize_vector(vector);
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("clip", json_vector(vector));
  if (!item.is_text)
    json.member("imageHeight", item.image_size.height).member("imageWidth", item.image_size.width);
  const std::size_t open = others.find('{'), close = others.rfind('}');
  if (open != std::string::npos && close > open + 1) json.json(others.substr(open + 1, close - open - 1));
  json.end_object();
  return out;
}

/// Apart from the other requests: the other server may take long.
void answer_with_upstream(Service& service, const std::shared_ptr<Call>& call, std::shared_ptr<Work> work,
                          const Json& json) {
  const std::string& upstream = service.options().immich_upstream;
  if (upstream.empty())
    throw ApiError(501, "only clip is served here; other tasks need a server that --immich-upstream names");
  service.post_slow([&service, call, work, upstream, entries = other_entries(json)] {
    try {
      const std::vector<FormPart> parts =
          read_form(call->request.body, *form_boundary(call->request.content_type));
      HttpResponse answer =
          ask_upstream(upstream, entries, find_part(parts, "image"), find_part(parts, "text"),
                       {.time = std::chrono::duration_cast<std::chrono::seconds>(
                            call->deadline - std::chrono::steady_clock::now())});
      if (answer.status == 200) check_upstream(answer);
      if (!work || answer.status != 200) return call->respond(std::move(answer));
      service.run(call, work,
                  [others = answer.body](const Work& done) { return clip_response(done, others); });
    } catch (const ApiError& error) {
      call->respond(error_response(call->dialect, error));
    } catch (const std::exception& error) {
      call->respond(error_response(call->dialect, ApiError(502, error.what())));
    }
  });
}

void answer_predict(Service& service, const std::shared_ptr<Call>& call) {
  const std::optional<std::string> boundary = form_boundary(call->request.content_type);
  if (!boundary) fail_immich_request("the body must be multipart/form-data");
  std::vector<FormPart> parts;
  try {
    parts = read_form(call->request.body, *boundary);
  } catch (const Error& error) {
    fail_immich_request(std::string(error.message()));
  }
  const FormPart* const field = find_part(parts, "entries");
  if (field == nullptr) fail_immich_request("there is no field entries");
  const Json json = read_entries_json(field->data);
  const ImmichEntries entries = read_entries(json);
  const FormPart* const image = find_part(parts, "image");
  const FormPart* const text = find_part(parts, "text");
  if (image == nullptr && text == nullptr) throw ApiError(400, "Either image or text must be provided");
  if (!entries.clip_model) return answer_with_upstream(service, call, nullptr, json);

  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*call, *entries.clip_model);
  work->image_rules =
      service.options().immich_resizes_as_model ? ImageRules::immich_model : ImageRules::immich;
  work->text_rules = TextRules::immich;
  if (entries.is_textual != (image == nullptr))
    throw ApiError(400, entries.is_textual ? "clip.textual takes a text" : "clip.visual takes an image");
  work->items.emplace_back();
  work->items.front().is_text = image == nullptr;
  work->items.front().data = image != nullptr ? image->data : text->data;
  if (service.models()[work->model].facts().embedding_dim == 0)
    throw ApiError(400, "this model has no vector of an image");
  service.check_takes(work->model, work->items);
  if (entries.has_others) return answer_with_upstream(service, call, work, json);
  call->request.body = {};
  service.run(call, work, [](const Work& done) { return clip_response(done, ""); });
}

/// A browser gets the page.
void answer_root(Service& service, const std::shared_ptr<Call>& call) {
  if (call->request.accept.find("text/html") != std::string::npos) return answer_page(service, call);
  call->respond({.body = "{\"message\": \"Immich ML\"}"});
}

void answer_ping(Service& /*service*/, const std::shared_ptr<Call>& call) {
  call->respond({.content_type = "text/plain; charset=utf-8", .body = "pong"});
}

constexpr Route kRoutes[]{
    {"GET", "/", Dialect::immich, false, false, answer_root},
    {"GET", "/ping", Dialect::immich, false, false, answer_ping},
    {"POST", "/predict", Dialect::immich, true, true, answer_predict},
};

}  // namespace

std::span<const Route> immich_routes() {
  return kRoutes;
}

}  // namespace vit::app
