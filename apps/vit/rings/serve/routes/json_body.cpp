#include "apps/vit/rings/serve/routes/json_body.h"

#include <algorithm>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/lines.h"
#include "vit/base/check.h"
#include "vit/io/json_writer.h"

namespace vit::app {
namespace {

constexpr const char* kBodyName = "the request";

[[noreturn]] void fail_kind(std::string_view name, std::string_view wanted) {
  throw ApiError(400, vit::text(name, " must be ", wanted), std::string(name), "invalid_type");
}

}  // namespace

internal::Json read_json_body(const std::string& body, std::size_t max_bytes, std::size_t max_values) {
  if (body.empty()) throw ApiError(400, "the body is empty; a JSON object is expected", {}, "invalid_json");
  try {
    internal::Json json =
        internal::parse_json(body, kBodyName, {.max_bytes = max_bytes, .max_values = max_values});
    if (!json.is_object()) throw ApiError(400, "the body must be a JSON object", {}, "invalid_json");
    return json;
  } catch (const Error& error) {
    throw ApiError(400, std::string(error.message()), {}, "invalid_json");
  }
}

internal::Json read_request(const HttpRequest& request, std::size_t max_bytes, std::size_t max_values) {
  if (!has_lines(request)) return read_json_body(request.body, max_bytes, max_values);
  return read_json_body(request.body.substr(0, request.body.find('\n')), max_bytes, max_values);
}

void check_count(std::size_t count, std::string_view name, std::size_t max_inputs) {
  if (count > max_inputs)
    throw ApiError(400, vit::text(count, " inputs; a request takes ", max_inputs), std::string(name),
                   "too_many_inputs");
}

void check_members(const internal::Json& body, std::span<const std::string_view> known) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const std::string_view name = body[i].key();
    if (body[i].is_null() || std::ranges::find(known, name) != known.end()) continue;
    std::string names;
    for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
    throw ApiError(400, vit::text("unknown field '", name, "'; there are: ", names), std::string(name),
                   "unknown_field");
  }
}

std::optional<std::string> find_text(const internal::Json& body, std::string_view name) {
  const std::optional<internal::Json> value = body.find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail_kind(name, "a string");
  return std::string(value->as_string());
}

std::optional<bool> find_flag(const internal::Json& body, std::string_view name) {
  const std::optional<internal::Json> value = body.find(name);
  if (!value) return std::nullopt;
  if (!value->is_bool()) fail_kind(name, "true or false");
  return value->as_bool();
}

std::optional<std::size_t> find_count(const internal::Json& body, std::string_view name, std::size_t max) {
  const std::optional<internal::Json> value = body.find(name);
  if (!value) return std::nullopt;
  try {
    return value->as_size({.min = 1, .max = max});
  } catch (const Error&) {
    fail_kind(name, vit::text("an integer from 1 to ", max));
  }
}

WorkItem image_item(std::string_view text, const std::string& param) {
  const std::optional<DataUri> uri = split_data_uri(text);
  if (uri && !uri->is_base64)
    throw ApiError(400, "a data URI of an image must be base64", param, "invalid_image");
  if (!uri && is_url(text))
    throw ApiError(400, "no URL is fetched: send the image as data:image/...;base64,... or as base64", param,
                   "url_not_fetched");
  std::optional<std::string> file = decode_base64(uri ? uri->data : text);
  if (!file || file->empty())
    throw ApiError(400, "an image must be a data URI or base64, found neither", param, "invalid_image");
  WorkItem item;
  item.data = *std::move(file);
  return item;
}

WorkItem text_item(std::string_view text) {
  WorkItem item;
  item.is_text = true;
  item.data = text;
  return item;
}

std::string json_vector(std::span<const float> values) {
  std::string out;
  JsonWriter(out, internal::JsonLayout::compact).array(values);
  return out;
}

}  // namespace vit::app
