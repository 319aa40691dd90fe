#include "apps/vit/rings/serve/routes/service.h"

#include <algorithm>
#include <new>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/http/gzip.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "vit/base/check.h"
#include "vit/version.h"

namespace vit::app {
namespace {

constexpr std::size_t kUpstreamThreads = 4;
constexpr std::size_t kLittleOfClient = std::size_t{1} << 20;  // bytes of bodies

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

std::string_view without_last_slash(std::string_view path) {
  return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

/// `path` has no slash at its end.
bool matches(const Route& route, std::string_view path) {
  return route.takes_rest ? path.starts_with(route.path) && path.size() > route.path.size()
                          : path == route.path;
}

/// Compresses answers in the thread that made them, where that pays.
Respond compressing(Respond respond) {
  return [respond = std::move(respond)](HttpResponse response) {
    std::optional<std::string> shorter = gzipped(response.body);
    if (shorter) {
      response.body = *std::move(shorter);
      response.headers.emplace_back("Content-Encoding", "gzip");
    }
    response.headers.emplace_back("Vary", "Accept-Encoding");
    respond(std::move(response));
  };
}

/// The key that a request brings.
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (starts_ignoring_case(given, kBearer)) return header_trimmed(given.substr(kBearer.size()));
  return request.api_key;
}

}  // namespace

/// Throws the failure of classes in words, which is that of every input.
void check_classes(const Work& work) {
  if (!work.classes || work.encoded) return;
  const WorkItem& item = work.items.front();
  const bool is_too_long = item.kind == ErrorKind::unsupported;
  throw ApiError(is_too_long                  ? 413
                 : item.kind == ErrorKind::io ? 503
                                              : 400,
                 item.failure, work.wanted == Wanted::task ? "classes" : "candidate_labels",
                 is_too_long ? "too_long" : "invalid_value");
}

void check_name(const Service& service, const Call& call) {
  const ServiceOptions& options = service.options();
  const std::string_view host = host_of_authority(call.request.host);
  if (service.has_keys() || is_own_host(host, options.names)) return;
  throw ApiError(421,
                 vit::text("this server is not known as ", host, ": start it with --allow-origin http://",
                           host, " or with a key"),
                 {}, "unknown_host");
}

ApiError failure_of_item(const WorkItem& item, const std::string& param) {
  const bool is_servers = item.kind == ErrorKind::io;
  return ApiError(is_servers ? 503 : 400, item.failure, param, is_servers ? "unavailable" : "invalid_input");
}

void check_items(const Work& work, const std::string& param) {
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    if (!work.items[i].failure.empty()) throw failure_of_item(work.items[i], vit::text(param, "[", i, "]"));
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
      keys_(std::make_shared<const ApiKeys>(options_.keys)),
      tasks_(options_.threads),
      slow_tasks_(options_.immich_upstream.empty() ? 0 : kUpstreamThreads) {
  for (const std::span<const Route> table :
       {operation_routes(), openai_routes(), dialect_routes(), inference_routes(), dense_routes(),
        rerank_routes(), task_routes(), immich_routes(), weaviate_routes(), page_routes(), paint_routes()})
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
  if (options_.index) models_[find_index_model(models_, *options_.index)].set_index(options_.index);
  is_ready_.store(true);
}

HttpHandler Service::handler() {
  return {
      .admit = [this](HttpRequest& request) { return admit(request); },
      .take_bytes = [this](const HttpRequest& request,
                           std::size_t bytes) { return take_bytes(request, bytes); },
      .begin = [this](const HttpRequest& request) { return begin(request); },
      .handle = [this](HttpRequest request, Respond respond,
                       GoneFlag gone) { handle(std::move(request), std::move(respond), std::move(gone)); },
      .refuse =
          [this](unsigned status, const std::string& message) {
            metrics_.add_rejected(status == 413   ? "too_large"
                                  : status == 408 ? "slow_client"
                                  : status == 429 ? "busy"
                                  : status == 503 ? "deadline"
                                                  : "malformed");
            HttpResponse out = error_response(Dialect::openai, ApiError(status, message));
            if (status == 503) out.headers.emplace_back("Retry-After", "5");  // in place of an earlier one
            return out;
          },
      .finished = [this](const HttpRecord& record) { finished(record); }};
}

// ------------------------------------------------------------------------------------------- admission

const Route* Service::find_route(std::string_view method, std::string_view path) const {
  path = without_last_slash(path);
  const auto found = std::ranges::find_if(
      routes_, [&](const Route& route) { return route.method == method && matches(route, path); });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Service::allowed_methods(std::string_view path) const {
  path = without_last_slash(path);
  std::string out;
  for (const Route& route : routes_) {
    if (!matches(route, path) || out.find(route.method) != std::string::npos) continue;
    out += (out.empty() ? "" : ", ") + std::string(route.method) + (route.method == "GET" ? ", HEAD" : "");
  }
  return out;
}

std::shared_ptr<const ApiKeys> Service::keys() const {
  const std::lock_guard lock(keys_mutex_);
  return keys_;
}

void Service::set_keys(ApiKeys keys) {
  auto given = std::make_shared<const ApiKeys>(std::move(keys));
  const std::lock_guard lock(keys_mutex_);
  keys_ = std::move(given);
}

bool Service::has_keys() const {
  return !keys()->empty();
}

/// Whose turn a request is: a client is a key where there are several, else an address.
void Service::set_client(HttpRequest& request) const {
  request.client = request.peer;
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  const std::shared_ptr<const ApiKey> key = keys->find(key_of(request));
  if (key && (keys->size() > 1 || key->max_requests > 0)) request.client = "key " + key->digest;
}

/// What is wrong with the key of a request now: keys may have changed while its body came.
std::optional<ApiError> Service::defect_of_key(const HttpRequest& request, const Route* route) const {
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  if (keys->empty() || (route != nullptr && !route->needs_key)) return std::nullopt;
  const std::shared_ptr<const ApiKey> key = keys->find(key_of(request));
  if (!key) return ApiError(401, "a key is needed: Authorization: Bearer KEY", {}, "invalid_api_key");
  if (key->allows_route(request.path)) return std::nullopt;
  return ApiError(403, "this key is not for " + request.path, {}, "forbidden");
}

HttpResponse Service::reject(const Route* route, std::string_view reason, const ApiError& error) {
  metrics_.add_rejected(reason);
  return error_response(route == nullptr ? Dialect::openai : route->dialect, error);
}

std::optional<HttpResponse> Service::admit(HttpRequest& request) {
  const Route* const route = find_route(request.method, request.path);
  set_client(request);
  if (const std::optional<ApiError> error = defect_of_key(request, route))
    return reject(route, "unauthorized", *error);
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
  return std::nullopt;
}

/// What one client may hold: a quarter is left for others.
std::size_t share_of_one(std::size_t all) {
  return all - all / 4;
}

Room room_for_body(std::size_t most, std::size_t held, std::size_t of_client, std::size_t bytes) {
  if (of_client + bytes > share_of_one(most)) return Room::none_for_client;
  const bool has_little = of_client + bytes <= kLittleOfClient;
  return held + bytes <= (has_little ? most : most - most / 8) ? Room::given : Room::none;
}

Room Service::take_bytes(const HttpRequest& request, std::size_t bytes) {
  Held& held = held_[request.client];
  const Room room = room_for_body(options_.max_request_bytes, num_bytes_, held.bytes, bytes);
  if (room != Room::given) return room;
  held.bytes += bytes;
  num_bytes_ += bytes;
  return room;
}

/// Whether a key may begin one more request: it has as many as its limit at once, and gets them again over a
/// minute.
bool Service::take_turn_of_minute(const ApiKey& key) {
  const auto now = std::chrono::steady_clock::now();
  const auto most = static_cast<double>(key.per_minute);
  const auto [at, is_new] = allowances_.try_emplace(key.digest, Allowance{.left = most, .when = now});
  Allowance& allowance = at->second;
  const std::chrono::duration<double> past = now - allowance.when;
  allowance.left = std::min(most, allowance.left + past.count() * most / 60.0);
  allowance.when = now;
  if (allowance.left < 1) return false;
  allowance.left -= 1;
  return true;
}

/// Requests count once their bodies are complete.
std::optional<HttpResponse> Service::begin(const HttpRequest& request) {
  const Route* const route = find_route(request.method, request.path);
  if (const std::optional<ApiError> error = defect_of_key(request, route))
    return reject(route, "unauthorized", *error);
  if (!route->is_work) return std::nullopt;
  Held& held = held_[request.client];
  if (num_requests_.load() >= options_.max_requests || held.requests >= share_of_one(options_.max_requests))
    return reject(route, "busy", ApiError(429, "too many requests wait; try again", {}, "busy"));
  if (const std::shared_ptr<const ApiKey> key = keys()->find(key_of(request))) {
    if (key->max_requests > 0 && held.requests >= key->max_requests)
      return reject(route, "key_limit",
                    ApiError(429, vit::text("this key may have ", key->max_requests, " requests at a time"),
                             {}, "key_limit"));
    if (key->per_minute > 0 && !take_turn_of_minute(*key))
      return reject(route, "key_limit",
                    ApiError(429, vit::text("this key may begin ", key->per_minute, " requests a minute"), {},
                             "key_limit"));
  }
  ++num_requests_;
  ++held.requests;
  return std::nullopt;
}

void Service::finished(const HttpRecord& record) {
  const Route* const route = find_route(record.method == "HEAD" ? "GET" : record.method, record.path);
  if (const auto held = held_.find(record.client); held != held_.end()) {
    if (record.was_begun && route->is_work) {
      --num_requests_;
      --held->second.requests;
    }
    num_bytes_ -= record.taken_bytes;
    held->second.bytes -= record.taken_bytes;
    if (held->second.requests == 0 && held->second.bytes == 0) held_.erase(held);
  }
  if (record.status == kClientGone) metrics_.add_rejected("client_gone");
  metrics_.add_request(route == nullptr ? "other" : route->path, record.status, record.seconds);
  log_.add(record);
}

Metrics::Gauges Service::gauges() const {
  return {.queue_depth = engine_.num_waiting(),
          .connections_in_work = num_requests_.load(),
          .worker_restarts = pool_.num_restarts(),
          .models_loaded = engine_.memory().num_loaded(),
          .model_bytes = engine_.memory().bytes(),
          .kept_images = engine_.kept_images().num_images(),
          .kept_bytes = engine_.kept_images().num_bytes(),
          .kept_hits = engine_.kept_images().num_hits(),
          .lines_dropped = log_.num_dropped()};
}

// --------------------------------------------------------------------------------------------- answering

void Service::handle(HttpRequest request, Respond respond, GoneFlag gone) {
  const Route* const route = find_route(request.method, request.path);
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  std::shared_ptr<const ApiKey> key =
      keys->empty() ? std::make_shared<const ApiKey>() : keys->find(key_of(request));
  const auto deadline = request.start + std::chrono::seconds(options_.request_seconds);
  const auto call = std::make_shared<Call>(Call{.request = std::move(request),
                                                .respond = std::move(respond),
                                                .gone = std::move(gone),
                                                .deadline = deadline,
                                                .dialect = route->dialect,
                                                .key = std::move(key),
                                                .route = route->path});
  if (route->is_instant) return answer_failures(*call, [&] { route->answer(*this, call); });
  if (call->request.takes_gzip) call->respond = compressing(std::move(call->respond));
  tasks_.post([this, route, call] {
    if (!call->gone->load()) answer_failures(*call, [&] { route->answer(*this, call); });
  });
}

std::size_t Service::find_model(const Call& call, const std::optional<std::string>& name,
                                bool (*takes)(const ServedModel& model)) const {
  std::string names;
  std::size_t num_allowed = 0, allowed = 0;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const bool is_allowed = call.allows_model(models_[i].name());
    if (name && models_[i].name() == *name) {
      if (is_allowed) return i;
      throw ApiError(403, "this key is not for the model '" + *name + "'", "model", "forbidden");
    }
    if (!is_allowed || (!name && takes != nullptr && !takes(models_[i]))) continue;
    ++num_allowed;
    allowed = i;
    names += (names.empty() ? "" : ", ") + models_[i].name();
  }
  constexpr std::size_t kMostOfName = 200;  // of what a client wrote
  if (name)
    throw ApiError(404, "there is no model '" + name->substr(0, kMostOfName) + "' here; there are: " + names,
                   "model", "model_not_found");
  if (num_allowed == 0 && takes != nullptr)
    throw ApiError(400, "no model here that this client may use does that", "model", "unsupported_input");
  if (num_allowed == 0) throw ApiError(403, "this key is for no model here", "model", "forbidden");
  if (num_allowed > 1) throw ApiError(400, "model: which one? There are: " + names, "model", "missing");
  return allowed;
}

std::size_t Service::first_model(const Call& call, bool (*fits)(const ServedModel& model)) const {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!call.allows_model(models_[i].name())) continue;
    if (fits(models_[i])) return i;
    if (!first) first = i;
  }
  if (!first) throw ApiError(403, "this key is for no model here", "model", "forbidden");
  return *first;
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

void Service::count_work(const Call& call, const Work& work) {
  const auto num_texts = static_cast<std::size_t>(
      std::ranges::count_if(work.items, [](const WorkItem& item) { return item.is_text; }));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - call.start;
  metrics_.add_model_work(
      models_[work.model].name(), call.route,
      {.images = work.items.size() - num_texts, .texts = num_texts, .seconds = time.count()});
}

void Service::run(const std::shared_ptr<Call>& call, std::shared_ptr<Work> work, Format format) {
  work->gone = call->gone;
  work->client = call->request.client;
  work->is_bulk = call->request.is_bulk;
  work->deadline = call->deadline;
  work->done = [this, call, format = std::move(format), weak = std::weak_ptr<Work>(work)](Work&) {
    const std::shared_ptr<Work> done = weak.lock();
    tasks_.post([this, call, format, done] {
      if (call->gone->load()) return;
      count_work(*call, *done);  // a client that has its answer finds it counted
      answer_failures(*call, [&] { call->respond(format(*done)); });
    });
  };
  if (const std::optional<Refusal> refusal = engine_.submit(work)) {
    metrics_.add_rejected(refusal->is_too_long ? "too_long" : "busy");
    throw refusal->is_too_long ? ApiError(413, refusal->why, {}, "too_long")
                               : ApiError(429, refusal->why, {}, "busy");
  }
}

}  // namespace vit::app
