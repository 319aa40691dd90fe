#include "apps/vit/rings/serve/http/http_head.h"

#include <algorithm>

#include "apps/vit/ground/header_text.h"
#include "vit/base/ascii.h"

namespace vit::app {
namespace {

constexpr std::size_t kMaxLengthDigits = 18;

bool is_length(std::string_view value) {
  return !value.empty() && value.size() <= kMaxLengthDigits &&
         std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

/// A character of a token (RFC 9110), of which names are made.
bool is_token_character(char c) {
  return internal::is_alphanumeric(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// The fields that say where a request ends and for whom it is.
struct Framing {
  std::size_t num_lengths = 0, num_codings = 0, num_hosts = 0;

  std::string_view add(std::string_view name, std::string_view value) {
    if (equal_ignoring_case(name, "content-length")) {
      if (++num_lengths > 1) return "Content-Length is there twice";
      if (!is_length(value)) return "Content-Length is no number";
    } else if (equal_ignoring_case(name, "transfer-encoding")) {
      if (++num_codings > 1) return "Transfer-Encoding is there twice";
      if (!equal_ignoring_case(value, "chunked")) return "Transfer-Encoding is not chunked";
    } else if (equal_ignoring_case(name, "host")) {
      if (++num_hosts > 1) return "Host is there twice";
    }
    if (num_lengths > 0 && num_codings > 0) return "Content-Length and Transfer-Encoding exclude each other";
    return {};
  }
};

}  // namespace

std::string_view defect_of_head(std::string_view head) {
  bool is_first = true, needs_host = false;
  Framing framing;
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    if (end == std::string_view::npos || end == 0 || head[end - 1] != '\r')
      return "a line of the head does not end in CR LF";
    const std::string_view line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    const auto is_control = [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return (byte < 0x20 && c != '\t') || byte == 0x7F;
    };
    if (std::ranges::any_of(line, is_control)) return "the head has control characters";
    if (line.empty()) break;
    if (is_first) {
      needs_host = line.ends_with("HTTP/1.1");
      is_first = false;
      continue;
    }
    if (line.front() == ' ' || line.front() == '\t') return "folded header lines are not taken";
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return "a header line has no name";
    const std::string_view name = line.substr(0, colon);
    if (!std::ranges::all_of(name, is_token_character)) return "the name of a header is no token";
    if (const std::string_view defect = framing.add(name, header_trimmed(line.substr(colon + 1)));
        !defect.empty())
      return defect;
  }
  if (!head.empty()) return "the head does not end where it should";
  if (needs_host && framing.num_hosts == 0) return "Host is missing";
  return {};
}

std::string_view host_of_authority(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_own_host(std::string_view host, std::span<const std::string> names) {
  constexpr std::string_view kLocal = "localhost", kBelow = ".localhost";
  const auto is_of_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  const auto is_it = [&](const std::string& name) { return name == "*" || equal_ignoring_case(name, host); };
  const bool is_below =
      host.size() > kBelow.size() && equal_ignoring_case(host.substr(host.size() - kBelow.size()), kBelow);
  return host.starts_with('[') || std::ranges::all_of(host, is_of_number) ||
         equal_ignoring_case(host, kLocal) || is_below || std::ranges::any_of(names, is_it);
}

std::string path_of_target(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  constexpr std::string_view kScheme = "http://";
  if (!starts_ignoring_case(target, kScheme)) return std::string(target);
  const std::size_t slash = target.find('/', kScheme.size());
  return slash == std::string_view::npos ? "/" : std::string(target.substr(slash));
}

std::string without_escapes(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_escape = path[i] == '%' && i + 2 < path.size();
    const int upper = is_escape ? internal::hexadecimal_digit(path[i + 1]) : -1;
    const int lower = is_escape ? internal::hexadecimal_digit(path[i + 2]) : -1;
    if (upper >= 0 && lower >= 0) {
      out += static_cast<char>(16 * upper + lower);
      i += 2;
    } else {
      out += path[i];
    }
  }
  return out;
}

}  // namespace vit::app
