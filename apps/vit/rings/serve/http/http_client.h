// One request to another server: the one that --immich-upstream names.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

/// Where an http:// URL leads.
struct HttpTarget {
  std::string host, port, path;  // path without a slash at the end; "" for the root
};
/// Throws UsageError for anything but http://HOST[:PORT][/PATH].
HttpTarget parse_http_target(const std::string& url);

struct HttpClientLimits {
  std::chrono::seconds time{60};
  std::size_t max_body = std::size_t{64} << 20;
};
/// Posts to target.path + `path`. Throws Error (io) where no whole answer comes within the limits.
HttpResponse post(const HttpTarget& target, const std::string& path, const std::string& content_type,
                  std::string body, const HttpClientLimits& limits);

}  // namespace vit::app
