// Requests and answers of one line an input (NDJSON).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/http/http.h"
#include "apps/vit/rings/serve/work/work.h"
#include "vit/io/json_writer.h"

namespace vit::app {

inline constexpr const char* kLinesType = "application/x-ndjson";

/// Whether the body of a request is lines.
inline bool has_lines(const HttpRequest& request) {
  const std::string_view type = request.content_type;
  return equal_ignoring_case(header_trimmed(type.substr(0, type.find(';'))), kLinesType);
}

/// Whether the client takes lines: they are among the types that it names, whatever else is.
inline bool wants_lines(const HttpRequest& request) {
  return accepted(request.accept, kLinesType).value_or(false);
}

/// The line of an input that failed.
inline void write_failure(internal::JsonWriter& json, std::size_t index, const std::string& failure) {
  json.begin_object().member("index", index).key("error").begin_object();
  json.member("message", failure).end_object().end_object();
}

/// A line for each input: what `write` makes of it, or its failure.
template <typename Write>
HttpResponse lines_of(const Work& work, const Write& write) {
  HttpResponse out{.content_type = kLinesType};
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const WorkItem& item = work.items[i];
    internal::JsonWriter json(out.body);
    item.failure.empty() ? static_cast<void>(write(json, item, i)) : write_failure(json, i, item.failure);
    out.body += "\n";
  }
  return out;
}

}  // namespace vit::app
