#include "apps/vit/ground/data_dir.h"

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
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  const fs::path built = folder / "data";  // a link in the build tree
  if (fs::is_directory(built / "model", unknown)) return built;
  return folder.parent_path() / "share" / "vit";
}

}  // namespace vit::app
