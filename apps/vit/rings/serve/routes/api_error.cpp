#include "apps/vit/rings/serve/routes/api_error.h"

#include "apps/vit/ground/text_format.h"
#include "vit/io/json_writer.h"

namespace vit::app {
namespace {

constexpr const char* kRetrySeconds = "1";

std::optional<std::string> or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

const char* openai_type(unsigned status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

std::string body_of(Dialect dialect, const ApiError& error) {
  const std::string message = error.what();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  switch (dialect) {
    case Dialect::openai:
      json.key("error").begin_object().member("message", message).member("type", openai_type(error.status()));
      json.member("param", or_null(error.param())).member("code", or_null(error.code())).end_object();
      break;
    case Dialect::immich: json.member("detail", message); break;
    case Dialect::weaviate: {  // has no other place for what is wrong
      const bool is_named = error.param().empty() || message.starts_with(error.param());
      json.member("error", is_named ? message : error.param() + ": " + message);
      break;
    }
  }
  json.end_object();
  return out;
}

}  // namespace

HttpResponse error_response(Dialect dialect, const ApiError& error) {
  HttpResponse out{.status = error.status(), .body = body_of(dialect, error)};
  if (error.status() == 429 || error.status() == 503) out.headers.emplace_back("Retry-After", kRetrySeconds);
  if (error.status() == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

}  // namespace vit::app
