// Files of rotary factors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// A safetensors file of rotary factors, as `vit rope identify` reads it.
void run_rope_identify(std::string_view input);
std::vector<std::string> rope_identify_seeds();

}  // namespace vit::fuzz
