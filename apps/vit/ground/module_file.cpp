#include "apps/vit/ground/module_file.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "vit/base/check.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr Where kWhere{"load module", ErrorKind::unsupported};

std::array<fs::path, 2> paths_of(const ModuleFile& module) {
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  const fs::path installed = folder / VIT_MODULE_FOLDER;  // "../lib/vit"
  const std::string name = std::string(module.name) + ".so";
  return {folder / name, installed.lexically_normal() / name};
}

/// Empty if it is missing.
fs::path find(const ModuleFile& module) {
  std::error_code unknown;
  for (const fs::path& path : paths_of(module)) {
    if (fs::exists(path, unknown)) return path;
  }
  return {};
}

}  // namespace

bool has_module(const ModuleFile& module) {
  return !find(module).empty();
}

const void* load_module(const ModuleFile& module) {
  const fs::path file = find(module);
  VIT_CHECK(!file.empty(), kWhere, "there is neither ", paths_of(module)[0].string(), " nor ",
            paths_of(module)[1].string(), ", with which the program ", module.purpose,
            ": it was built without ", module.package, " of Debian, or copied without this file; ",
            module.without);
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* const found =
      library == nullptr ? nullptr : ::dlsym(library, std::string(module.symbol).c_str());
  if (found == nullptr) {
    const char* const why = ::dlerror();
    fail(kWhere, "the part of the program that ", module.purpose,
         " cannot be loaded: ", why == nullptr ? file.c_str() : why);
  }
  return found;
}

}  // namespace vit::app
