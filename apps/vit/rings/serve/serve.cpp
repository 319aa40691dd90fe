// vit serve: models for programs that ask over HTTP.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/options.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/http/http_client.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/routes/request_log.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "apps/vit/rings/serve/serve_options.h"
#include "apps/vit/rings/serve/work/decode_pool.h"
#include "apps/vit/rings/serve/work/engine.h"
#include "apps/vit/rings/serve/work/image_index.h"
#include "apps/vit/rings/serve/work/metrics.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/checkpoint.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  vit serve --model siglip2/\n"
    "  vit serve --model ViT-B-32__openai=clip/ --model dinov2/ --host 0.0.0.0 --api-key-file key.txt\n"
    "  curl http://127.0.0.1:3003/v1/embeddings -H 'Content-Type: application/json' \\\n"
    "    -d '{\"model\": \"siglip2\", \"input\": [\"a cat\"]}'\n"
    "Paths: /v1/embeddings, /v1/classify, /v1/models (OpenAI's clients), /v1/depth, /v1/segment, "
    "/v1/detect,\n"
    "/v1/pose, /v1/anomaly, /v1/search, /v1/rerank, /v1/features (the commands of these names), /predict and "
    "/ping\n"
    "(immich), /vectorize (Weaviate), /openapi.json (all of them), /health, /metrics, and / for a browser.\n"
    "There is no TLS: a proxy in front adds it. VIT_API_KEY in the environment is the key where there is no "
    "file of keys. Requests take turns;\n"
    "X-Priority: bulk comes after all others. After SIGTERM the server ends once what is under way is\n"
    "answered, after 7 seconds with 503. SIGHUP reads models and keys again.";

constexpr const char* kKeyVariable = "VIT_API_KEY";
constexpr std::size_t kHeldBytes =
    512 * kMebibyte;  // of bodies that have arrived, at least two of the largest
constexpr std::size_t kPaintedBytes = 256 * kMebibyte;  // features of images that are painted on
std::vector<ServedModel> served_models(const ServeOptions& options) {
  std::vector<ServedModel> out;
  const auto add = [&](const std::string& name, const std::filesystem::path& path) {
    const auto same = [&](const ServedModel& model) { return model.name() == name; };
    if (std::ranges::any_of(out, same))
      fail_usage("--model: two models are called '", name, "'; write NAME=PATH");
    CommonOptions common = options.common;
    common.model = path;
    out.emplace_back(name, std::move(common));
  };
  for (const std::string& value : options.models) {
    const auto [name, path] = parse_served_model(value);
    add(name, path);
  }
  if (out.empty()) add("vit", model_path(options.common));
  return out;
}

/// How each model's images are preprocessed; nothing where no file defines it.
std::vector<std::optional<Preprocessor>> preprocessors_of(std::span<const ServedModel> models) {
  std::vector<std::optional<Preprocessor>> out;
  for (const ServedModel& model : models) {
    const CommonOptions& common = model.common();
    const std::optional<PreprocessConfig> config =
        Checkpoint(common.model, common.model_options).preprocess_config(common.session.input_size);
    out.push_back(config ? std::optional<Preprocessor>(*config) : std::nullopt);
  }
  return out;
}

/// Hosts by which browsers may ask for pictures of the index.
std::vector<std::string> names_of_server(const ServeOptions& options) {
  std::vector<std::string> out{options.host.value_or("")};
  for (const std::string& origin : options.allowed_origins) {
    const std::size_t scheme = origin.find("://");
    out.emplace_back(scheme == std::string::npos
                         ? origin
                         : host_of_authority(std::string_view(origin).substr(scheme + 3)));
  }
  return out;
}

/// The keys of the files, or that of the variable.
ApiKeys read_keys(const ServeOptions& options) {
  const char* const variable = std::getenv(kKeyVariable);
  if (variable != nullptr && *variable == '\0') fail_usage(kKeyVariable, " is empty");
  return ApiKeys::read(options.api_key_file, options.api_keys, variable);
}

/// Reports the state of the service to systemd, if it asks for that (Type=notify).
void notify_manager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) < 2 || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // of the abstract name space
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
           length);
  ::close(socket);
}

HttpServerOptions server_options(const ServeOptions& options) {
  HttpServerOptions out{.host = std::nullopt,
                        .port = options.port.value_or(3003),
                        .unix_path = options.unix_path.string(),
                        .unix_mode = options.unix_mode,
                        .limits = {},
                        .allowed_origins = options.allowed_origins};
  // with --unix there is TCP only where it is asked for
  if (options.host || options.port || options.unix_path.empty())
    out.host = options.host.value_or("127.0.0.1");
  out.limits.max_body = options.max_body();
  out.limits.max_connections = options.max_connections;
  out.limits.request_seconds = options.request_seconds;
  out.limits.head_seconds = std::min(out.limits.head_seconds, options.request_seconds);
  return out;
}

/// Loads every model once, as serving would.
int check(std::span<ServedModel> models, const ImageIndex* index, const HttpServerOptions& options) {
  check_addresses(options);
  for (ServedModel& model : models) {
    model.load();
    model.unload();
  }
  if (index != nullptr) find_index_model(models, *index);
  return 0;
}

EngineOptions engine_options(const ServeOptions& options,
                             std::span<const std::optional<Preprocessor>> preprocessors) {
  return {.threads = options.common.session.threads,
          .batch = options.common.session.batch,
          .max_waiting = options.max_waiting,
          .idle_unload_seconds = options.idle_unload_seconds,
          .memory_budget = options.memory_budget_mebibytes * kMebibyte,
          .kept_bytes = options.kept_mebibytes * kMebibyte,
          .preprocessors = preprocessors};
}

ServiceOptions service_options(const ServeOptions& options, ApiKeys keys, std::size_t threads,
                               std::shared_ptr<const ImageIndex> index,
                               std::span<const std::optional<Preprocessor>> preprocessors) {
  return {.keys = std::move(keys),
          .max_requests = options.max_requests,
          .max_request_bytes = std::max(kHeldBytes, 2 * options.max_body()),
          .request_seconds = options.request_seconds,
          .threads = threads,
          .max_body = options.max_body(),
          .immich_upstream = options.immich_upstream,
          .immich_resizes_as_model = options.immich_resize == ImmichResize::model,
          .names = names_of_server(options),
          .index = std::move(index),
          .preprocessors = preprocessors,
          .kept = std::make_shared<KeptValues>(kPaintedBytes)};
}

/// All that answers; what its members refer to outlives it.
class RunningServer {
 public:
  RunningServer(const ServeOptions& options, std::span<ServedModel> models, DecodePool& pool,
                ServiceOptions service)
      : options_(options),
        models_(models),
        pool_(pool),
        log_(options.log),
        engine_(models, pool, metrics_, engine_options(options, service.preprocessors)),
        service_(models, engine_, pool, metrics_, log_, std::move(service)),
        server_(server_options(options), service_.handler()) {}

  /// Until a signal, or what ends it; the exit code.
  int run() {
    note_addresses();
    pool_.watch([this] { end_with("the processes that decode images were ended; start the server again"); });
    server_.on_reload([this] { reload(); });
    engine_.start([this](const std::string& why) { note_loaded(why); });
    server_.run();
    notify_manager("STOPPING=1");
    engine_.stop();
    if (failure_.empty()) return 0;
    print_failure("", failure_);
    return 1;
  }

 private:
  void note_addresses() const {
    for (const std::string& address : server_.addresses())
      log_.add_event("listening", "listening on " + address, {{"address", address}}, true);
    if (!server_.is_local() && !service_.has_keys())
      log_.add_event("no_key", "anyone who reaches this address may use it: --api-key-file asks for a key");
  }

  void note_loaded(const std::string& failure) {
    if (!failure.empty()) return end_with(failure);
    try {
      service_.set_ready();
    } catch (const Error& error) {
      return end_with(error.what());
    }
    notify_manager("READY=1");
    log_.add_event("ready",
                   text(models_.size(), models_.size() == 1 ? " model is loaded" : " models are loaded"));
  }

  /// In the thread of the server.
  void reload() {
    const auto note = [this](bool is_failure, const std::string& what) {
      log_.add_event(is_failure ? "reload_failed" : "reload", what, {}, true);
    };
    try {
      service_.set_keys(read_keys(options_));
      if (service_.has_keys()) note(false, "the keys are read again");
    } catch (const std::exception& error) {
      note(true, text("the keys stay as they were: ", error.what()));
    }
    engine_.reload(note);
  }

  void end_with(const std::string& why) {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.empty()) failure_ = why;
    server_.stop();
  }

  const ServeOptions& options_;
  std::span<ServedModel> models_;
  DecodePool& pool_;
  Metrics metrics_;
  const RequestLog log_;
  Engine engine_;
  Service service_;
  std::mutex failure_mutex_;
  std::string failure_;  // guarded
  HttpServer server_;
};

int serve(const ServeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // what reads the log may end
  std::vector<ServedModel> models = served_models(options);
  if (!options.immich_upstream.empty()) static_cast<void>(parse_http_target(options.immich_upstream));
  const std::vector<std::optional<Preprocessor>> preprocessors = preprocessors_of(models);
  const auto threads = static_cast<std::size_t>(internal::resolve_threads(options.common.session.threads));
  // Before there are threads and before the key is read: the processes that decode are forked from here.
  DecodePool pool(
      preprocessors,
      {.processes = threads, .max_file_bytes = options.max_body(), .confined = !options.unconfined});
  ApiKeys keys = read_keys(options);
  std::shared_ptr<const ImageIndex> index =
      options.index.empty() ? nullptr : std::make_shared<const ImageIndex>(options.index);
  if (options.only_check) return check(models, index.get(), server_options(options));
  RunningServer server(options, models, pool,
                       service_options(options, std::move(keys), threads, std::move(index), preprocessors));
  return server.run();
}

}  // namespace

Command serve_command() {
  const auto options = std::make_shared<ServeOptions>();
  Command command{.name = "serve",
                  .summary = "Answer programs over HTTP: OpenAI's embeddings, immich, Weaviate, browsers",
                  .footer = kExamples,
                  .options = serve_options(*options),
                  .run = [options] { return serve(*options); }};
  return command;
}

}  // namespace vit::app
