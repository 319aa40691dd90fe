// Between HTTP and the work: which request is taken, which route answers it, and what is counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/api_keys.h"
#include "apps/vit/rings/serve/routes/request_log.h"
#include "apps/vit/rings/serve/routes/route.h"
#include "apps/vit/rings/serve/work/engine.h"
#include "apps/vit/rings/serve/work/image_index.h"
#include "apps/vit/rings/serve/work/kept_values.h"
#include "apps/vit/rings/serve/work/metrics.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "apps/vit/rings/serve/work/task_threads.h"
#include "vit/image/preprocess.h"

namespace vit::app {

struct ServiceOptions {
  ApiKeys keys;                                            // empty: none is asked for
  std::size_t max_requests = 256;                          // in work at a time
  std::size_t max_request_bytes = std::size_t{512} << 20;  // of their bodies, as far as they have arrived
  std::size_t max_inputs = 2048;                           // of a request
  unsigned request_seconds = 60;
  std::size_t threads = 1;  // that read requests and write answers
  std::size_t max_body = std::size_t{32} << 20;
  std::string immich_upstream;                // "": none
  bool immich_resizes_as_model = false;       // of /predict: see ImageRules
  std::vector<std::string> names{};           // of this server, besides localhost; "*": any
  std::shared_ptr<const ImageIndex> index{};  // of the page; null: none
  std::span<const std::optional<Preprocessor>> preprocessors{};  // of the models
  std::shared_ptr<KeptValues> kept{};                            // features of images for later requests
};

class Service {
 public:
  Service(std::span<ServedModel> models, Engine& engine, DecodePool& pool, Metrics& metrics,
          const RequestLog& log, ServiceOptions options);

  HttpHandler handler();
  /// From now on work is taken: all models are loaded. Throws Error if none of them made the index.
  void set_ready();
  /// Other keys from now on; in any thread.
  void set_keys(ApiKeys keys);

  // ---------------------------------------------------------------------------------------- for the routes

  const ServiceOptions& options() const noexcept { return options_; }
  std::span<const ServedModel> models() const noexcept { return models_; }
  bool is_ready() const noexcept { return is_ready_.load(); }
  Metrics::Gauges gauges() const;
  const Metrics& metrics() const noexcept { return metrics_; }
  std::span<const Route> routes() const noexcept { return routes_; }
  /// The index of a model by name; the only one that `takes` the request (null: any) where there is no name.
  /// Throws ApiError: 404, 403 for one that the key does not allow, 400 where a name is needed.
  std::size_t find_model(const Call& call, const std::optional<std::string>& name,
                         bool (*takes)(const ServedModel& model) = nullptr) const;
  /// The first model that this client may use and that fits; where none fits, the first that it may use.
  /// Throws ApiError (403) where there is none.
  std::size_t first_model(const Call& call, bool (*fits)(const ServedModel& model)) const;
  /// Whether a key is asked for.
  bool has_keys() const;
  /// Throws ApiError unless the model takes every one of these inputs.
  void check_takes(std::size_t model, std::span<const WorkItem> items) const;
  /// Computes, and answers with what `format` makes of the result. Items that failed are an ApiError unless
  /// `format` looks at them itself. Throws ApiError (429) where too much waits.
  using Format = std::function<HttpResponse(const Work& work)>;
  void run(const std::shared_ptr<Call>& call, std::shared_ptr<Work> work, Format format);
  /// Whether images can be decoded.
  bool can_decode() const noexcept { return pool_.is_alive(); }
  /// What waits for another server, in a thread that no other request needs.
  void post_slow(std::function<void()> task) { slow_tasks_.post(std::move(task)); }

 private:
  /// What a client has here; no client may have all.
  struct Held {
    std::size_t requests = 0, bytes = 0;
  };

  /// The requests that a key may still begin.
  struct Allowance {
    double left = 0;
    std::chrono::steady_clock::time_point when;
  };

  std::optional<HttpResponse> admit(HttpRequest& request);
  std::optional<HttpResponse> begin(const HttpRequest& request);
  bool take_turn_of_minute(const ApiKey& key);
  Room take_bytes(const HttpRequest& request, std::size_t bytes);
  void handle(HttpRequest request, Respond respond, GoneFlag gone);
  void finished(const HttpRecord& record);
  const Route* find_route(std::string_view method, std::string_view path) const;
  std::string allowed_methods(std::string_view path) const;
  std::shared_ptr<const ApiKeys> keys() const;
  void set_client(HttpRequest& request) const;
  std::optional<ApiError> defect_of_key(const HttpRequest& request, const Route* route) const;
  void count_work(const Call& call, const Work& work);
  HttpResponse reject(const Route* route, std::string_view reason, const ApiError& error);

  std::span<ServedModel> models_;
  Engine& engine_;
  DecodePool& pool_;
  Metrics& metrics_;
  const RequestLog& log_;
  const ServiceOptions options_;
  std::vector<Route> routes_;
  mutable std::mutex keys_mutex_;
  std::shared_ptr<const ApiKeys> keys_;  // guarded
  std::atomic<bool> is_ready_{false};
  std::atomic<std::size_t> num_requests_{0};
  std::size_t num_bytes_ = 0;  // this and the next two belong to the thread of the server
  std::map<std::string, Held> held_;
  std::map<std::string, Allowance> allowances_;  // by the digest of a key that has a limit
  TaskThreads tasks_, slow_tasks_;               // last: their threads end first
};

/// Whether `bytes` more of a body fit where bodies may hold `most`: `held` are of all clients, `of_client` of
/// the one that asks. No client has more than three quarters, and an eighth is for those that have little.
Room room_for_body(std::size_t most, std::size_t held, std::size_t of_client, std::size_t bytes);

/// Which of the models, all loaded once, made the index. Throws Error if none of them did.
std::size_t find_index_model(std::span<const ServedModel> models, const ImageIndex& index);

/// An index holds pictures that are not for everyone. A page of another server whose name was made to lead to
/// this address (DNS rebinding) gets nothing of them: without a key, requests name this server as it is
/// known. Throws ApiError (421) for another name.
void check_name(const Service& service, const Call& call);
/// The failure of an item as an answer.
ApiError failure_of_item(const WorkItem& item, const std::string& param);
/// Throws the failure of classes in words, which is that of every input.
void check_classes(const Work& work);
/// Throws the failure of the first item that failed as an ApiError whose param is `param` with its index.
void check_items(const Work& work, const std::string& param);

}  // namespace vit::app
