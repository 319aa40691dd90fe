// Where the data that ship with the program lie.
#pragma once

#include <filesystem>

namespace vit::app {

/// VIT_DATA_DIR of the environment, else data/ beside the program, which the build tree has, else share/vit
/// beside the bin/ that the program runs from.
std::filesystem::path data_dir();

}  // namespace vit::app
