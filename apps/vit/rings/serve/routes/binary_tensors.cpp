#include "apps/vit/rings/serve/routes/binary_tensors.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr const char* kLengthHeader = "Inference-Header-Content-Length";

/// The bytes of JSON at the beginning of a body.
std::size_t json_bytes(const HttpRequest& request) {
  if (request.json_length.empty()) return request.body.size();
  std::size_t out = 0;
  const char *const begin = request.json_length.data(), *const end = begin + request.json_length.size();
  const auto [stop, error] = std::from_chars(begin, end, out);
  if (error != std::errc() || stop != end || out > request.body.size())
    throw ApiError(400, std::string(kLengthHeader) + " must be the bytes of JSON in the body", kLengthHeader,
                   "invalid_value");
  return out;
}

std::optional<Json> parameter(const Json& of, std::string_view name) {
  const std::optional<Json> parameters = of.find("parameters");
  return parameters && parameters->is_object() ? parameters->find(name) : std::nullopt;
}

bool is_true(const std::optional<Json>& flag) {
  return flag && flag->kind() == Json::Kind::boolean && flag->as_bool();
}

}  // namespace

InferBody::InferBody(const HttpRequest& request, std::size_t max_bytes, std::size_t max_json_values)
    : rest_(std::string_view(request.body).substr(json_bytes(request))),
      json_(read_json_body(request.body.substr(0, json_bytes(request)), max_bytes, max_json_values)) {}

std::optional<std::string_view> InferBody::take(const Json& tensor, const std::string& place) {
  const std::optional<Json> size = parameter(tensor, "binary_data_size");
  if (!size) return std::nullopt;
  const std::size_t count = size->as_size();
  if (count > rest_.size())
    throw ApiError(400,
                   vit::text(place, ": binary_data_size is ", count, ", and ", rest_.size(), " bytes follow"),
                   place, "invalid_value");
  const std::string_view out = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return out;
}

void InferBody::check_end() const {
  if (!rest_.empty())
    throw ApiError(400, vit::text(rest_.size(), " bytes after the JSON are of no tensor"), "inputs",
                   "invalid_value");
}

std::vector<std::string_view> split_strings(std::string_view bytes, std::size_t max_count,
                                            const std::string& place) {
  std::vector<std::string_view> out;
  while (!bytes.empty()) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof length)
      throw ApiError(400, place + ": a string without its length", place, "invalid_value");
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (length > bytes.size())
      throw ApiError(400, vit::text(place, ": a string of ", length, " bytes, and ", bytes.size(), " follow"),
                     place, "invalid_value");
    check_count(out.size() + 1, place, max_count);
    out.push_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return out;
}

std::vector<float> floats_of(std::string_view bytes, std::size_t count, const std::string& place) {
  if (bytes.size() / sizeof(float) != count || bytes.size() % sizeof(float) != 0)
    throw ApiError(400,
                   vit::text(place, " has ", bytes.size(), " bytes, its shape ", count, " numbers of four"),
                   place, "invalid_value");
  std::vector<float> out(count);
  if (count != 0) std::memcpy(out.data(), bytes.data(), bytes.size());  // no numbers: no address
  return out;
}

bool wants_binary(const Json& body) {
  const std::optional<Json> outputs = body.find("outputs");
  if (outputs && outputs->is_array() && outputs->size() > 0) {
    if (const std::optional<Json> own = parameter((*outputs)[0], "binary_data")) return is_true(own);
  }
  return is_true(parameter(body, "binary_data_output"));
}

HttpResponse binary_response(std::string json, std::span<const float> numbers) {
  HttpResponse out{.content_type = "application/octet-stream"};
  out.headers.emplace_back(kLengthHeader, std::to_string(json.size()));
  out.body = std::move(json);
  out.body.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  return out;
}

}  // namespace vit::app
