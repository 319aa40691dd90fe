#include "vit/io/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace vit::internal {
namespace {

namespace fs = std::filesystem;

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

fs::file_type type_of(const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG: return fs::file_type::regular;
    case DT_DIR: return fs::file_type::directory;
    case DT_LNK: return fs::file_type::symlink;
    case DT_BLK: return fs::file_type::block;
    case DT_CHR: return fs::file_type::character;
    case DT_FIFO: return fs::file_type::fifo;
    case DT_SOCK: return fs::file_type::socket;
    default: return fs::file_type::unknown;
  }
}

}  // namespace

std::vector<FolderEntry> list_folder(const fs::path& folder, std::error_code& error) {
  error.clear();
  std::vector<FolderEntry> entries;
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (open == nullptr) {
    error.assign(errno, std::generic_category());
    return entries;
  }
  while (true) {
    errno = 0;  // distinguishes the end from an error
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({std::string(name), type_of(*entry)});
  }
  error.assign(errno, std::generic_category());
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

}  // namespace vit::internal
