#include "apps/vit/rings/serve/routes/infer_input.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

using internal::Json;

std::vector<std::size_t> read_shape(const Json& input, const std::string& place) {
  const Json shape = input.at("shape");
  shape.expect(Json::Kind::array);
  if (shape.size() == 0 || shape.size() > 4)
    throw ApiError(400, place + ".shape must have 1 to 4 numbers", place, "invalid_value");
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    out.push_back(shape[i].as_size({.min = 1, .max = kMaxInferNumbers}));
  return out;
}

/// The numbers of `data`, whose lists may be nested as the shape is.
void append_numbers(const Json& data, std::vector<float>& out) {
  if (!data.is_array()) return out.push_back(static_cast<float>(data.as_double()));
  for (std::size_t i = 0; i < data.size(); ++i) append_numbers(data[i], out);
}

std::vector<WorkItem> pixel_items(const Json& input, std::optional<std::string_view> bytes,
                                  const InferLimits& limits, const std::string& place) {
  std::vector<std::size_t> shape = read_shape(input, place);
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  if (shape.size() != 4 || shape[1] != limits.num_channels)
    throw ApiError(400,
                   vit::text(place, ".shape must be [batch, ", limits.num_channels,
                             ", height, width] of preprocessed pixels"),
                   place, "invalid_value");
  check_count(shape[0], place, limits.max_inputs);
  const std::size_t size = shape[1] * shape[2] * shape[3];
  std::vector<float> numbers;
  if (bytes) {
    numbers = floats_of(*bytes, shape[0] * size, place);
  } else {
    append_numbers(input.at("data"), numbers);
  }
  if (numbers.size() != shape[0] * size)
    throw ApiError(400,
                   vit::text(place, ".data has ", numbers.size(), " numbers, its shape ", shape[0] * size),
                   place, "invalid_value");
  std::vector<WorkItem> out(shape[0]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].pixels = Tensor<float>(Shape{shape[1], shape[2], shape[3]});
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(i * size), size, out[i].pixels.data());
  }
  return out;
}

std::vector<WorkItem> byte_items(const Json& input, bool are_texts, const std::string& place,
                                 std::size_t max_inputs) {
  const Json data = input.at("data");
  data.expect(Json::Kind::array);
  check_count(data.size(), place, max_inputs);
  std::vector<WorkItem> out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::string one = vit::text(place, ".data[", i, "]");
    if (!data[i].is_string()) throw ApiError(400, one + " must be a string", one, "invalid_type");
    out.push_back(are_texts ? text_item(data[i].as_string()) : image_item(data[i].as_string(), one));
  }
  return out;
}

/// Of strings in binary: texts, image files as they are, or data URIs.
std::vector<WorkItem> binary_items(std::string_view bytes, bool are_texts, const std::string& place,
                                   std::size_t max_inputs) {
  std::vector<WorkItem> out;
  for (const std::string_view one : split_strings(bytes, max_inputs, place)) {
    if (are_texts) {
      out.push_back(text_item(one));
    } else if (one.starts_with("data:")) {
      out.push_back(image_item(one, vit::text(place, "[", out.size(), "]")));
    } else {
      out.emplace_back().data = one;
    }
  }
  return out;
}

std::vector<WorkItem> read_tensor(InferBody& infer, const InferLimits& limits, const std::string& place) {
  const Json inputs = infer.json().at("inputs");
  inputs.expect(Json::Kind::array);
  if (inputs.size() != 1 || !inputs[0].is_object())
    throw ApiError(400, "inputs must hold one tensor: pixels (FP32), image or text (BYTES)", "inputs",
                   "invalid_value");
  const Json input = inputs[0];
  const std::string name = find_text(input, "name").value_or("");
  const std::string type = find_text(input, "datatype").value_or("");
  const std::optional<std::string_view> bytes = infer.take(input, place);
  infer.check_end();
  if (type == "FP32" && name != kImageTensor && name != kTextTensor)
    return pixel_items(input, bytes, limits, place);
  if (type == "BYTES" && (name == kImageTensor || name == kTextTensor))
    return bytes ? binary_items(*bytes, name == kTextTensor, place, limits.max_inputs)
                 : byte_items(input, name == kTextTensor, place, limits.max_inputs);
  throw ApiError(400, place + " must be pixels of FP32, or image or text of BYTES", place, "invalid_value");
}

}  // namespace

std::vector<WorkItem> read_infer_input(InferBody& infer, const InferLimits& limits) {
  const std::string place = "inputs[0]";
  std::vector<WorkItem> out = read_tensor(infer, limits, place);
  if (out.empty()) throw ApiError(400, place + " has no elements", place, "invalid_value");
  return out;
}

}  // namespace vit::app
