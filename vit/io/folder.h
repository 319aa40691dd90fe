// What a folder holds, read without exceptions of another type than the library's own.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace vit::internal {

struct FolderEntry {
  std::string name;  // any bytes but '/' and zero
  /// As the folder tells it, links not followed; unknown where it does not tell.
  std::filesystem::file_type type = std::filesystem::file_type::unknown;
};

/// The entries of a folder but "." and "..", sorted by name; after an error those that were found before it.
/// Memory that does not suffice is std::bad_alloc or an error, never the end of the process, as in
/// std::filesystem::directory_iterator, whose steps are noexcept and allocate.
std::vector<FolderEntry> list_folder(const std::filesystem::path& folder, std::error_code& error);

}  // namespace vit::internal
