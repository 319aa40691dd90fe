// The contents of a folder, read without exceptions other than the library's own.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace vit::internal {

struct FolderEntry {
  std::string name;  // any bytes but '/' and zero
  /// As recorded in the folder, links not followed; unknown if it is not recorded.
  std::filesystem::file_type type = std::filesystem::file_type::unknown;
};

/// The entries of a folder except "." and "..", sorted by name; after an error, those found before it.
/// Insufficient memory is std::bad_alloc or an error and never ends the process, unlike
/// std::filesystem::directory_iterator, whose steps are noexcept and allocate.
std::vector<FolderEntry> list_folder(const std::filesystem::path& folder, std::error_code& error);

}  // namespace vit::internal
