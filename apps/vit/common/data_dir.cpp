#include "apps/vit/common/data_dir.h"

#include <cstdlib>
#include <system_error>

namespace vit::app {

std::filesystem::path data_dir() {
  namespace fs = std::filesystem;
  if (const char* const from_environment = std::getenv("VIT_DATA_DIR");
      from_environment && *from_environment) {
    return from_environment;
  }
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "vit";
    if (fs::is_directory(installed, unknown)) return installed;
  }
  return VIT_SOURCE_DATA_DIR;
}

}  // namespace vit::app
