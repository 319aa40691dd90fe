#include "apps/vit/rings/serve/routes/api_error.h"

#include "apps/vit/ground/text_format.h"

namespace vit::app {
namespace {

constexpr const char* kRetrySeconds = "1";

std::string or_null(const std::string& text) {
  return text.empty() ? "null" : json_string(text);
}

const char* openai_type(unsigned status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

std::string body_of(Dialect dialect, const ApiError& error) {
  const std::string message = json_string(error.what());
  switch (dialect) {
    case Dialect::openai:
      return "{\"error\": {\"message\": " + message + ", \"type\": \"" + openai_type(error.status()) +
             "\", \"param\": " + or_null(error.param()) + ", \"code\": " + or_null(error.code()) + "}}";
    case Dialect::immich: return "{\"detail\": " + message + "}";
    case Dialect::weaviate: {  // has no other place for what is wrong
      const std::string text = error.what();
      const bool is_named = error.param().empty() || text.starts_with(error.param());
      return "{\"error\": " + (is_named ? message : json_string(error.param() + ": " + text)) + "}";
    }
  }
  return {};
}

}  // namespace

HttpResponse error_response(Dialect dialect, const ApiError& error) {
  HttpResponse out{.status = error.status(), .body = body_of(dialect, error)};
  if (error.status() == 429 || error.status() == 503) out.headers.emplace_back("Retry-After", kRetrySeconds);
  if (error.status() == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

}  // namespace vit::app
