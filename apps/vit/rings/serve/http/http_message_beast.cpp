#include "apps/vit/rings/serve/http/http_message_beast.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <random>
#include <string_view>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/http/gzip.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "vit/base/ascii.h"

namespace vit::app {
namespace {

namespace http = boost::beast::http;

/// An id of the client that can go into a log as it is.
bool is_usable_id(std::string_view id) {
  const auto is_plain = [](char c) {
    return internal::is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, is_plain);
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::array<char, 64> out;
  std::snprintf(out.data(), out.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                kDays[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return out.data();
}

}  // namespace

std::string new_request_id() {
  static std::mt19937_64 random(std::random_device{}());
  std::array<char, 17> digits;
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(random()));
  return digits.data();
}

void take_fields(const http::request<GrowingBody>& head, HttpRequest& request) {
  const auto field = [&](auto name) { return std::string(head[name]); };
  request.method = std::string(head.method_string());
  if (request.method == "HEAD") request.method = "GET";
  request.path = path_of_target(std::string_view(head.target().data(), head.target().size()));
  request.host = field(http::field::host);
  request.content_type = field(http::field::content_type);
  request.accept = field(http::field::accept);
  request.takes_gzip = accepts_gzip(field(http::field::accept_encoding));
  request.authorization = field(http::field::authorization);
  request.api_key = field("X-Api-Key");
  request.json_length = field("Inference-Header-Content-Length");
  request.is_bulk = equal_ignoring_case(field("X-Priority"), "bulk");
  if (const std::string id = field("X-Request-Id"); is_usable_id(id)) request.id = id;
}

HttpResponse preflight_answer() {
  return {.status = 204,
          .content_type = "",
          .headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST"},
                      {"Access-Control-Allow-Headers",
                       "Authorization, Content-Type, Inference-Header-Content-Length, X-Api-Key, X-Priority, "
                       "X-Request-Id"},
                      {"Access-Control-Max-Age", "600"}}};
}

http::response<http::string_body> to_message(HttpResponse response, const AnswerForm& form) {
  http::response<http::string_body> out(static_cast<http::status>(response.status), 11);
  out.set(http::field::date, http_date());
  if (!response.content_type.empty()) out.set(http::field::content_type, response.content_type);
  out.set("X-Request-Id", form.id);
  for (const auto& [name, value] : response.headers) out.set(name, value);
  if (!form.origin.empty()) {
    out.set(http::field::access_control_allow_origin, form.origin);
    out.set(http::field::access_control_expose_headers,
            "Retry-After, X-Request-Id, Inference-Header-Content-Length");
    const std::string vary(out[http::field::vary]);
    out.set(http::field::vary, vary.empty() ? "Origin" : vary + ", Origin");
  }
  out.keep_alive(form.keeps_connection);
  const std::size_t length = response.body.size();
  if (form.has_body) out.body() = std::move(response.body);
  if (response.status != 204) out.content_length(length);
  return out;
}

}  // namespace vit::app
