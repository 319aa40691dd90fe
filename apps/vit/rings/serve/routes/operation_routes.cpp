// What watches the server: its health and its counts.
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/base/check.h"
#include "vit/version.h"

namespace vit::app {
namespace {

constexpr const char* kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

void answer_health(Service& service, const std::shared_ptr<Call>& call) {
  if (!service.is_ready())
    return call->respond(
        {.status = 503, .body = "{\"status\": \"loading\"}", .headers = {{"Retry-After", "1"}}});
  if (!service.can_decode())
    return call->respond(
        {.status = 503, .body = "{\"status\": \"the processes that decode images are gone\"}"});
  HttpResponse out;
  JsonWriter json(out.body);
  json.begin_object().member("status", "ok").member("version", version()).key("models").begin_array();
  for (const ServedModel& model : service.models()) json.value(model.name());
  json.end_array().end_object();
  call->respond(std::move(out));
}

void answer_metrics(Service& service, const std::shared_ptr<Call>& call) {
  call->respond({.content_type = kPrometheus, .body = service.metrics().text(service.gauges(), version())});
}

constexpr Route kRoutes[]{
    {.method = "GET",
     .path = "/health",
     .dialect = Dialect::openai,
     .needs_key = false,
     .is_work = false,
     .answer = answer_health,
     .is_instant = true},
    {.method = "GET",
     .path = "/metrics",
     .dialect = Dialect::openai,
     .needs_key = true,
     .is_work = false,
     .answer = answer_metrics,
     .is_instant = true},
};

}  // namespace

std::span<const Route> operation_routes() {
  return kRoutes;
}

}  // namespace vit::app
