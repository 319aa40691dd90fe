// JSON text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_json(std::string_view input);
std::vector<std::string> json_seeds();

}  // namespace vit::fuzz
