// What of a request's head is refused before it is parsed: forms that two programs may read in two ways, by
// which one request is smuggled past a proxy inside another.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vit::app {

/// Why the bytes of a head, from the request line to the empty line, are refused; "" if they are not.
/// Refused: lines that end in anything but CR LF, folded lines, a name that white space follows, control
/// characters, a length that is there twice or is no number, a length together with a transfer coding, any
/// coding but "chunked", and a Host that is missing or there twice (HTTP/1.1).
std::string_view defect_of_head(std::string_view head);

/// The path of a request's target without its query: "/a" of "/a?b" and of "http://host/a", "/" of
/// "http://host".
std::string path_of_target(std::string_view target);

/// A part of a path, with %2F and its like decoded; what is no such escape stays as it is.
std::string without_escapes(std::string_view path);

/// The host of HOST[:PORT] or [HOST]:PORT.
std::string_view host_of_authority(std::string_view authority);

/// Whether a host can be this machine only: "", a number, localhost, one of `names`; "*" among these is any.
bool is_own_host(std::string_view host, std::span<const std::string> names);

}  // namespace vit::app
