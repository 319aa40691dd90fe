// Weights that are no longer floating-point numbers: which program made them so.
#pragma once

#include <optional>
#include <string>

#include "vit/io/json.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// What quantized the weights and what to do about it, by config.json's quantization_config or by names and
/// types of tensors; "" for plain weights.
std::string describe_quantization(const TensorFile& tensors, const std::optional<Json>& config);

}  // namespace vit::internal
