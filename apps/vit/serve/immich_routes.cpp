// immich's machine learning service, as its server asks it: one entry of a form says what is wanted of one
// image or text. What is not CLIP is left to another server.
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/serve/http_client.h"
#include "apps/vit/serve/json_body.h"
#include "apps/vit/serve/multipart.h"
#include "apps/vit/serve/page.h"
#include "apps/vit/serve/service.h"
#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

using internal::Json;

/// What the entries of a request ask for.
struct Entries {
  std::optional<std::string> clip_model;
  bool is_textual = false;
  bool has_others = false;  // other tasks
};

[[noreturn]] void fail_entries(const std::string& why) {
  throw ApiError(422, "Invalid request format: " + why);
}

const FormPart* find_part(std::span<const FormPart> parts, std::string_view name) {
  for (const FormPart& part : parts) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

Json read_entries_json(const FormPart* part) {
  if (part == nullptr) fail_entries("there is no field entries");
  try {
    return internal::parse_json(part->data, "entries");
  } catch (const Error& error) {
    fail_entries(std::string(error.message()));
  }
}

/// {"clip": {"visual" | "textual": {"modelName": NAME, "options": {...}}}, ...}
Entries read_entries(const Json& json) {
  Entries out;
  if (!json.is_object() || json.size() == 0) fail_entries("entries must be an object of tasks");
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Json task = json[i];
    if (!task.is_object() || task.size() == 0)
      fail_entries(std::string(task.key()) + " must be an object of types");
    for (std::size_t j = 0; j < task.size(); ++j) {
      const Json entry = task[j];
      const std::optional<Json> name = entry.is_object() ? entry.find("modelName") : std::nullopt;
      if (!name || !name->is_string())
        fail_entries(vit::text(task.key(), ".", entry.key(), " has no modelName"));
      if (task.key() != "clip") {
        out.has_others = true;
        continue;
      }
      if ((entry.key() != "visual" && entry.key() != "textual") || out.clip_model)
        fail_entries("clip must have one of visual and textual");
      out.clip_model = name->as_string();
      out.is_textual = entry.key() == "textual";
    }
  }
  return out;
}

/// A value as JSON again.
void append_json(std::string& out, const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; break;
    case Json::Kind::boolean: out += value.as_bool() ? "true" : "false"; break;
    case Json::Kind::number: {
      internal::TextStream digits;
      digits.precision(17);
      digits << value.as_double();
      out += digits.str();
      break;
    }
    case Json::Kind::string: append_json_string(out, value.as_string()); break;
    case Json::Kind::array:
    case Json::Kind::object: {
      const bool is_object = value.is_object();
      out += is_object ? '{' : '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ", ";
        if (is_object) out += json_string(value[i].key()) + ": ";
        append_json(out, value[i]);
      }
      out += is_object ? '}' : ']';
      break;
    }
  }
}

/// The entries of all tasks but clip.
std::string other_entries(const Json& json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i].key() == "clip") continue;
    out += (out.empty() ? "" : ", ") + json_string(json[i].key()) + ": ";
    append_json(out, json[i]);
  }
  return "{" + out + "}";
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

/// {"clip": "[0.1,...]", "imageHeight": ..., "imageWidth": ...}, with the members of `others`, an object.
HttpResponse clip_response(const Work& work, const std::string& others) {
  const WorkItem& item = work.items.front();
  if (!item.failure.empty()) throw ApiError(item.kind == ErrorKind::io ? 503 : 400, item.failure);
  std::vector<float> vector = item.values;
  normalize(vector);
  std::string out = "{\"clip\": \"";
  append_json_vector(out, vector);
  out += "\"";
  if (!item.is_text)
    out +=
        vit::text(", \"imageHeight\": ", item.image_size.height, ", \"imageWidth\": ", item.image_size.width);
  const std::size_t open = others.find('{'), close = others.rfind('}');
  if (open != std::string::npos && close > open + 1) out += ", " + others.substr(open + 1, close - open - 1);
  return {.body = out + "}"};
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
                       {.time = std::chrono::seconds(service.options().request_seconds)});
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
  if (!boundary) fail_entries("the body must be multipart/form-data");
  std::vector<FormPart> parts;
  try {
    parts = read_form(call->request.body, *boundary);
  } catch (const Error& error) {
    fail_entries(std::string(error.message()));
  }
  const Json json = read_entries_json(find_part(parts, "entries"));
  const Entries entries = read_entries(json);
  const FormPart* const image = find_part(parts, "image");
  const FormPart* const text = find_part(parts, "text");
  if (image == nullptr && text == nullptr) throw ApiError(400, "Either image or text must be provided");
  if (!entries.clip_model) return answer_with_upstream(service, call, nullptr, json);

  const auto work = std::make_shared<Work>();
  work->model = service.find_model(*entries.clip_model);
  work->image_rules = ImageRules::immich;
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
