// Vectors as answers, for every interface that has embeddings.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "vit/io/json_writer.h"

namespace vit::app {

/// How vectors are written.
struct VectorFormat {
  bool is_base64 = false;
  std::size_t dimensions = 0;  // 0: all
  bool is_normalized = false;
};

/// The member `dimensions`; throws ApiError (400) for a length that the model was not trained for.
VectorFormat read_dimensions(const internal::Json& body, const ModelFacts& facts);
/// [0.1,-2.0,...], or a string, base64 of little-endian float32.
void write_vector(internal::JsonWriter& json, std::vector<float> values, const VectorFormat& format);
/// Throws ApiError (400) for the first text that is longer than the model takes; `option` permits it.
void check_uncut(const Work& work, const std::string& param, std::string_view option);

/// OpenAI's embeddings; `strings`: what strings are unless the request says so.
void answer_embeddings_of(Service& service, const std::shared_ptr<Call>& call, StringMeaning strings);

}  // namespace vit::app
