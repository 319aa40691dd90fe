// What is wrong with options of a command, said of the members of a request that have their names.
#pragma once

#include <string>
#include <string_view>

namespace vit::app {

/// "--mask-threshold is for --task panoptic" as "mask_threshold is for task panoptic".
std::string of_members(std::string_view message);

}  // namespace vit::app
