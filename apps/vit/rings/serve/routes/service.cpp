#include "apps/vit/rings/serve/routes/service.h"

#include <algorithm>
#include <new>
#include <utility>

#include "apps/vit/ground/sha256.h"
#include "apps/vit/rings/serve/http/header_text.h"
#include "vit/base/check.h"
#include "vit/version.h"

namespace vit::app {
namespace {

constexpr std::size_t kUpstreamThreads = 4;

/// Answers with what `work` throws.
template <typename Work>
void answer_failures(const Call& call, const Work& work) {
  try {
    return work();
  } catch (const ApiError& error) {
    call.respond(error_response(call.dialect, error));
  } catch (const Error& error) {  // of the request, which was read; the library names what is wrong with it
    call.respond(error_response(call.dialect, ApiError(400, std::string(error.message()))));
  } catch (const std::bad_alloc&) {
    call.respond(error_response(call.dialect, ApiError(503, "the server is out of memory; try again")));
  } catch (const std::exception& error) {
    call.respond(error_response(call.dialect, ApiError(500, error.what())));
  }
}

bool matches(const Route& route, std::string_view path) {
  return route.takes_rest ? path.starts_with(route.path) && path.size() > route.path.size()
                          : path == route.path;
}

/// The key that a request brings.
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (starts_ignoring_case(given, kBearer)) return header_trimmed(given.substr(kBearer.size()));
  return request.api_key;
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  // digests have one length, and which of their digits differ says nothing about the texts
  const std::string x = sha256(std::as_bytes(std::span(a))), y = sha256(std::as_bytes(std::span(b)));
  unsigned difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(x[i]) ^ static_cast<unsigned char>(y[i]));
  return difference == 0;
}

void check_items(const Work& work, const std::string& param) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const WorkItem& item = work.items[i];
    if (item.failure.empty()) continue;
    const bool is_servers = item.kind == ErrorKind::io;
    throw ApiError(is_servers ? 503 : 400, item.failure, vit::text(param, "[", i, "]"),
                   is_servers ? "unavailable" : "invalid_input");
  }
}

Service::Service(std::span<ServedModel> models, Engine& engine, DecodePool& pool, Metrics& metrics,
                 const RequestLog& log, ServiceOptions options)
    : models_(models),
      engine_(engine),
      pool_(pool),
      metrics_(metrics),
      log_(log),
      options_(std::move(options)),
      tasks_(options_.threads),
      slow_tasks_(options_.immich_upstream.empty() ? 0 : kUpstreamThreads) {
  for (const std::span<const Route> table :
       {operation_routes(), openai_routes(), immich_routes(), weaviate_routes(), page_routes()})
    routes_.insert(routes_.end(), table.begin(), table.end());
}

std::size_t find_index_model(std::span<const ServedModel> models, const ImageIndex& index) {
  const RunModel& made = index.model();
  const auto same = [&](const ServedModel& model) {
    return model.facts().run.fingerprint == made.fingerprint;
  };
  const auto found = std::ranges::find_if(models, same);
  const ServedModel& model = found == models.end() ? models.front() : *found;
  made.check_same(model.facts().run, "--index");
  return static_cast<std::size_t>(&model - models.data());
}

void Service::set_ready() {
  if (options_.index != nullptr) index_model_ = find_index_model(models_, *options_.index);
  is_ready_.store(true);
}

HttpHandler Service::handler() {
  return {
      .admit = [this](const HttpRequest& request, std::size_t bytes) { return admit(request, bytes); },
      .handle = [this](HttpRequest request, Respond respond,
                       GoneFlag gone) { handle(std::move(request), std::move(respond), std::move(gone)); },
      .refuse =
          [this](unsigned status, const std::string& message) {
            metrics_.add_rejected(status == 413   ? "too_large"
                                  : status == 408 ? "slow_client"
                                  : status == 503 ? "deadline"
                                                  : "malformed");
            return error_response(Dialect::openai, ApiError(status, message));
          },
      .finished = [this](const HttpRecord& record) { finished(record); }};
}

// ------------------------------------------------------------------------------------------- admission

const Route* Service::find_route(std::string_view method, std::string_view path) const {
  const auto found = std::ranges::find_if(
      routes_, [&](const Route& route) { return route.method == method && matches(route, path); });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Service::allowed_methods(std::string_view path) const {
  std::string out;
  for (const Route& route : routes_) {
    if (!matches(route, path) || out.find(route.method) != std::string::npos) continue;
    out += (out.empty() ? "" : ", ") + std::string(route.method) + (route.method == "GET" ? ", HEAD" : "");
  }
  return out;
}

bool Service::has_key(const HttpRequest& request) const {
  return options_.api_key.empty() || equal_in_constant_time(key_of(request), options_.api_key);
}

HttpResponse Service::reject(const Route* route, std::string_view reason, const ApiError& error) {
  metrics_.add_rejected(reason);
  return error_response(route == nullptr ? Dialect::openai : route->dialect, error);
}

std::optional<HttpResponse> Service::admit(const HttpRequest& request, std::size_t reserved_bytes) {
  const Route* const route = find_route(request.method, request.path);
  if ((route == nullptr || route->needs_key) && !has_key(request))
    return reject(route, "unauthorized",
                  ApiError(401, "a key is needed: Authorization: Bearer KEY", {}, "invalid_api_key"));
  if (route == nullptr) {
    const std::string allowed = allowed_methods(request.path);
    if (allowed.empty())
      return reject(nullptr, "not_found", ApiError(404, "there is nothing at this path", {}, "not_found"));
    HttpResponse out =
        reject(nullptr, "method", ApiError(405, "this path takes " + allowed, {}, "method_not_allowed"));
    out.headers.emplace_back("Allow", allowed);
    return out;
  }
  if (!route->is_work) return std::nullopt;
  if (!is_ready())
    return reject(route, "loading", ApiError(503, "the models are being loaded", {}, "loading"));
  if (num_requests_.load() >= options_.max_requests ||
      (num_bytes_.load() > 0 && num_bytes_.load() + reserved_bytes > options_.max_request_bytes))
    return reject(route, "busy", ApiError(429, "too many requests wait; try again", {}, "busy"));
  ++num_requests_;
  num_bytes_ += reserved_bytes;
  return std::nullopt;
}

void Service::finished(const HttpRecord& record) {
  const Route* const route = find_route(record.method == "HEAD" ? "GET" : record.method, record.path);
  if (record.was_admitted && route != nullptr && route->is_work) {
    --num_requests_;
    num_bytes_ -= record.admitted_bytes;
  }
  if (record.status == kClientGone) metrics_.add_rejected("client_gone");
  metrics_.add_request(route == nullptr ? "other" : route->path, record.status, record.seconds);
  log_.add(record);
}

Metrics::Gauges Service::gauges() const {
  return {.queue_depth = engine_.num_waiting(),
          .connections_in_work = num_requests_.load(),
          .worker_restarts = pool_.num_restarts(),
          .models_loaded = engine_.num_loaded()};
}

// --------------------------------------------------------------------------------------------- answering

void Service::handle(HttpRequest request, Respond respond, GoneFlag gone) {
  const Route* const route = find_route(request.method, request.path);
  const auto call = std::make_shared<Call>(
      Call{.request = std::move(request),
           .respond = std::move(respond),
           .gone = std::move(gone),
           .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options_.request_seconds),
           .dialect = route->dialect});
  tasks_.post([this, route, call] {
    if (!call->gone->load()) answer_failures(*call, [&] { route->answer(*this, call); });
  });
}

std::size_t Service::find_model(const std::optional<std::string>& name) const {
  std::string names;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (name && models_[i].name() == *name) return i;
    names += (i == 0 ? "" : ", ") + models_[i].name();
  }
  if (name)
    throw ApiError(404, "there is no model '" + *name + "' here; there are: " + names, "model",
                   "model_not_found");
  if (models_.size() > 1) throw ApiError(400, "model: which one? There are: " + names, "model", "missing");
  return 0;
}

void Service::check_takes(std::size_t model, std::span<const WorkItem> items) const {
  const ModelFacts& facts = models_[model].facts();
  if (items.size() > options_.max_inputs)
    throw ApiError(400, vit::text(items.size(), " inputs; a request takes ", options_.max_inputs), "input",
                   "too_many_inputs");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& lack = items[i].is_text ? facts.no_texts : facts.no_images;
    if (!lack.empty()) throw ApiError(400, lack, vit::text("input[", i, "]"), "unsupported_input");
  }
}

void Service::run(const std::shared_ptr<Call>& call, std::shared_ptr<Work> work, Format format) {
  work->gone = call->gone;
  work->deadline = call->deadline;
  work->done = [this, call, format = std::move(format), weak = std::weak_ptr<Work>(work)](Work&) {
    const std::shared_ptr<Work> done = weak.lock();
    tasks_.post([call, format, done] {
      if (!call->gone->load()) answer_failures(*call, [&] { call->respond(format(*done)); });
    });
  };
  if (!engine_.submit(work)) {
    metrics_.add_rejected("busy");
    throw ApiError(429, "too many inputs wait; try again", {}, "busy");
  }
}

}  // namespace vit::app
