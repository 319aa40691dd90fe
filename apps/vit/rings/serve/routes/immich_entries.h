// The field `entries` of a request to immich's machine learning service: which tasks, by which models.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vit/io/json.h"

namespace vit::app {

/// What the entries of a request ask for.
struct ImmichEntries {
  std::optional<std::string> clip_model;
  bool is_textual = false;
  bool has_others = false;  // other tasks
};

/// Throws ApiError (422).
[[noreturn]] void fail_immich_request(const std::string& why);
/// The field as JSON. Throws ApiError (422).
internal::Json read_entries_json(std::string_view field);
/// {"clip": {"visual" | "textual": {"modelName": NAME, "options": {...}}}, ...}. Throws ApiError (422).
ImmichEntries read_entries(const internal::Json& json);
/// The entries of all tasks but clip, as JSON.
std::string other_entries(const internal::Json& json);

}  // namespace vit::app
