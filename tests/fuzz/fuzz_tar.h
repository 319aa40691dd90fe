// Archives of images.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

void run_tar(std::string_view input);
std::vector<std::string> tar_seeds();

}  // namespace vit::fuzz
