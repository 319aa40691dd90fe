// What a client gets instead of an answer, in the form of the interface that it uses.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

/// Whose clients use a route.
enum class Dialect { openai, immich, weaviate };

class ApiError : public std::runtime_error {
 public:
  /// `param`: the place in the request, "input[3]"; `code`: a word for programs. "" where there is none.
  ApiError(unsigned status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  unsigned status() const noexcept { return status_; }
  const std::string& param() const noexcept { return param_; }
  const std::string& code() const noexcept { return code_; }

 private:
  unsigned status_;
  std::string param_, code_;
};

/// openai `{"error": {"message", "type", "param", "code"}}`, immich `{"detail"}`, weaviate `{"error"}`; with
/// Retry-After for 429 and 503, WWW-Authenticate for 401.
HttpResponse error_response(Dialect dialect, const ApiError& error);

}  // namespace vit::app
