// Where the data that ship with the program lie.
#pragma once

#include <filesystem>

namespace vit::app {

/// VIT_DATA_DIR of the environment, else share/vit beside the bin/ that the program runs from, else the data/
/// of the sources that it was built from.
std::filesystem::path data_dir();

}  // namespace vit::app
