// The location of the data shipped with the program.
#pragma once

#include <filesystem>

namespace vit::app {

/// VIT_DATA_DIR of the environment, else data/ next to the program, as in the build tree, else share/vit
/// next to the bin/ folder of the program.
std::filesystem::path data_dir();

}  // namespace vit::app
