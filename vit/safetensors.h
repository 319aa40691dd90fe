// Tensors of a safetensors file by name, for models that are put together from parts.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// All tensors of a file, converted to float32 from float16, bfloat16, float32 or float64. Throws Error if
/// the file is not a valid safetensors file, or has a tensor of another type or of more than four dimensions.
VIT_API std::map<std::string, Tensor<float>> read_safetensors(const std::filesystem::path& file);

}  // namespace vit
