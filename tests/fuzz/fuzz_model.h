// Whole models in memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The first line of the input is a config.json, the rest a safetensors file.
void run_model_bytes(std::string_view input);
std::vector<std::string> model_bytes_seeds();

}  // namespace vit::fuzz
