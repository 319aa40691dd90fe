// Answers in gzip, where a client takes that and it pays.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vit::app {

/// Whether an Accept-Encoding header takes gzip: by name or by *, with a weight above 0.
bool accepts_gzip(std::string_view header);

/// The text as a gzip file; nothing for one that is short or would hardly be shorter, which its first part
/// shows.
std::optional<std::string> gzipped(std::string_view text);

}  // namespace vit::app
