// Picture files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_decode(std::string_view input);
void run_decode_rows(std::string_view input);
std::vector<std::string> decode_seeds();

}  // namespace vit::fuzz
