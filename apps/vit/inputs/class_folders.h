// Folders of labeled images: one folder for each class.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vit::app {

/// The folders in `root`, sorted, without those of left_by_others(). Throws Error with `operation` if there
/// is no such folder or it contains none.
std::vector<std::filesystem::path> class_folders(const std::filesystem::path& root,
                                                 const std::string& operation);

}  // namespace vit::app
