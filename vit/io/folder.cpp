#include "vit/io/folder.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "vit/base/system.h"

namespace vit::internal {

std::vector<FolderEntry> list_folder(const std::filesystem::path& folder, std::error_code& error) {
  error.clear();
  std::vector<FolderEntry> entries;
  system::Folder open(folder);
  if (!open.is_open()) {
    error.assign(errno, std::generic_category());
    return entries;
  }
  while (open.next()) {
    if (open.name() != "." && open.name() != "..") entries.push_back({std::string(open.name()), open.type()});
  }
  error.assign(errno, std::generic_category());
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

}  // namespace vit::internal
