#include "apps/vit/rings/serve/routes/immich_entries.h"

#include <charconv>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "vit/base/check.h"

namespace vit::app {

using internal::Json;

namespace {

/// A value as JSON again.
void write(JsonWriter& out, const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null: out.value(nullptr); break;
    case Json::Kind::boolean: out.value(value.as_bool()); break;
    case Json::Kind::number: {
      char digits[32];
      out.json({digits, std::to_chars(digits, digits + sizeof digits, value.as_double(),
                                      std::chars_format::general, 17)
                            .ptr});
      break;
    }
    case Json::Kind::string: out.value(value.as_string()); break;
    case Json::Kind::array:
      out.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) write(out, value[i]);
      out.end_array();
      break;
    case Json::Kind::object:
      out.begin_object();
      for (std::size_t i = 0; i < value.size(); ++i) write(out.key(value[i].key()), value[i]);
      out.end_object();
      break;
  }
}

}  // namespace

void fail_immich_request(const std::string& why) {
  throw ApiError(422, "Invalid request format: " + why);
}

Json read_entries_json(std::string_view field) {
  try {
    return internal::parse_json(field, "entries");
  } catch (const Error& error) {
    fail_immich_request(std::string(error.message()));
  }
}

ImmichEntries read_entries(const Json& json) {
  ImmichEntries out;
  if (!json.is_object() || json.size() == 0) fail_immich_request("entries must be an object of tasks");
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Json task = json[i];
    if (!task.is_object() || task.size() == 0)
      fail_immich_request(std::string(task.key()) + " must be an object of types");
    for (std::size_t j = 0; j < task.size(); ++j) {
      const Json entry = task[j];
      const std::optional<Json> name = entry.is_object() ? entry.find("modelName") : std::nullopt;
      if (!name || !name->is_string())
        fail_immich_request(vit::text(task.key(), ".", entry.key(), " has no modelName"));
      if (task.key() != "clip") {
        out.has_others = true;
        continue;
      }
      if ((entry.key() != "visual" && entry.key() != "textual") || out.clip_model)
        fail_immich_request("clip must have one of visual and textual");
      out.clip_model = name->as_string();
      out.is_textual = entry.key() == "textual";
    }
  }
  return out;
}

std::string other_entries(const Json& json) {
  std::string out;
  JsonWriter others(out);
  others.begin_object();
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i].key() != "clip") write(others.key(json[i].key()), json[i]);
  }
  others.end_object();
  return out;
}

}  // namespace vit::app
