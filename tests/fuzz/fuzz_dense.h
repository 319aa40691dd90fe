// Models with heads that give maps: their configurations, and heads in files of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::fuzz {

/// The first line of the input names a folder of data/golden/dense; the rest is its config.json. A model that
/// loads is run on an image of its own size, if that is small.
void run_dense_config(std::string_view input);
std::vector<std::string> dense_config_seeds();

/// The input is a head file for a tiny backbone.
void run_dense_head(std::string_view input);
std::vector<std::string> dense_head_seeds();

}  // namespace vit::fuzz
