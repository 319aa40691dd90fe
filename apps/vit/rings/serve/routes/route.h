// What answers a path: the tables of each interface, and one request on its way to an answer.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/api_keys.h"

namespace vit::app {

class Service;

/// One request on its way to an answer.
struct Call {
  HttpRequest request;
  Respond respond;
  GoneFlag gone;
  std::chrono::steady_clock::time_point deadline;
  Dialect dialect = Dialect::openai;
  std::shared_ptr<const ApiKey> key{};  // of all rights where the server asks for none; null: of none
  std::string_view route{};             // its path in the table
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  bool allows_model(std::string_view name) const { return key && key->allows_model(name); }
};

/// What answers a path. Works in a thread of the service; what it throws becomes the answer.
struct Route {
  std::string_view method, path;
  Dialect dialect;
  bool needs_key;
  bool is_work;  // of models: counted, bounded, and refused until they are loaded
  void (*answer)(Service& service, const std::shared_ptr<Call>& call);
  bool takes_rest = false;        // path is the beginning of those that it answers
  bool is_instant = false;        // answered in the thread of the server, whatever else is in work
  std::string_view summary = {};  // of /openapi.json
};

// The tables of each interface.
std::span<const Route> operation_routes();
std::span<const Route> openai_routes();
std::span<const Route> immich_routes();
std::span<const Route> weaviate_routes();
std::span<const Route> dialect_routes();
std::span<const Route> inference_routes();
std::span<const Route> dense_routes();
std::span<const Route> rerank_routes();
std::span<const Route> task_routes();
std::span<const Route> page_routes();
std::span<const Route> paint_routes();

/// The page for a browser.
void answer_page(Service& service, const std::shared_ptr<Call>& call);
// page.html, page.css and page.js of this folder, which the build embeds
extern const std::string_view kServePageFrame;
extern const std::string_view kServePageStyle;
extern const std::string_view kServePageScript;

}  // namespace vit::app
