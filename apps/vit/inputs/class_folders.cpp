#include "apps/vit/inputs/class_folders.h"

#include <system_error>

#include "apps/vit/inputs/inputs.h"
#include "vit/base/check.h"

namespace vit::app {

namespace fs = std::filesystem;

std::vector<fs::path> class_folders(const fs::path& root, const std::string& operation) {
  std::error_code error;
  VIT_CHECK(fs::exists(root, error), operation, root.string(), ": no such folder");
  VIT_CHECK(fs::is_directory(root, error), operation, root.string(),
            ": is a file; expected a folder with one subfolder of images per class; unpack archives "
            "first");
  std::vector<fs::path> folders = entries_of(root, error);
  VIT_CHECK(!error, operation, root.string(), ": ", error.message());
  std::erase_if(folders, [](const fs::path& path) {
    std::error_code unreadable;
    return left_by_others(path.filename().string()) != nullptr || !fs::is_directory(path, unreadable);
  });
  VIT_CHECK(!folders.empty(), operation, root.string(), ": contains no folders; expected one per class");
  return folders;
}

}  // namespace vit::app
