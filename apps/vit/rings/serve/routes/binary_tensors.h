// The extension of the Open Inference Protocol for binary tensors: the body begins with JSON, whose length a
// header states, and the numbers of its tensors follow, little-endian, in their order.
// https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"
#include "vit/io/json.h"

namespace vit::app {

/// A body, of which tensors are taken one after the other.
class InferBody {
 public:
  /// Throws ApiError (400).
  InferBody(const HttpRequest& request, std::size_t max_bytes, std::size_t max_json_values);

  const internal::Json& json() const noexcept { return json_; }
  /// The bytes of a tensor if they are binary. Throws ApiError (400) naming `place` if they are cut off.
  std::optional<std::string_view> take(const internal::Json& tensor, const std::string& place);
  /// Throws ApiError (400) if bytes are left.
  void check_end() const;

 private:
  std::string_view rest_;  // of the request's body
  internal::Json json_;
};

/// Strings, each after its length in four bytes. Throws ApiError (400) naming `place`.
std::vector<std::string_view> split_strings(std::string_view bytes, std::size_t max_count,
                                            const std::string& place);
/// Float32 numbers. Throws ApiError (400) naming `place` unless they are `count`.
std::vector<float> floats_of(std::string_view bytes, std::size_t count, const std::string& place);
/// Whether a request asks for the output in binary: by a parameter of it, or of all.
bool wants_binary(const internal::Json& body);
/// An answer whose JSON is `json` and whose only tensor is `numbers`.
HttpResponse binary_response(std::string json, std::span<const float> numbers);

}  // namespace vit::app
