#include <algorithm>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/serve/http/http_client.h"

namespace vit::app {

HttpTarget parse_http_target(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  constexpr unsigned long kMaxPort = 65535;
  const auto refuse = [&] {
    fail_usage("--immich-upstream: expected http://HOST[:PORT], without TLS, found '", url, "'");
  };
  if (!url.starts_with(kScheme)) refuse();
  const std::string rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string place = rest.substr(0, slash);
  HttpTarget out{.host = place, .port = "80", .path = rest.substr(slash)};
  while (out.path.ends_with('/')) out.path.pop_back();
  const std::size_t bracket = place.starts_with('[') ? place.find(']') : 0;  // of IPv6
  if (bracket == std::string::npos) refuse();
  if (const std::size_t colon = place.find(':', bracket); colon != std::string::npos) {
    out.host = place.substr(0, colon);
    out.port = place.substr(colon + 1);
  }
  if (out.host.starts_with('[')) out.host = out.host.substr(1, out.host.size() - 2);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (out.host.empty() || out.port.empty() || out.port.size() > 5 ||
      !std::ranges::all_of(out.port, is_digit) || std::stoul(out.port) > kMaxPort ||
      std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c >= 0x7F; }))
    refuse();
  return out;
}

}  // namespace vit::app
