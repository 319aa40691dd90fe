// The status of a path, without exceptions other than the library's own.
#pragma once

#include <filesystem>
#include <system_error>

#include "vit/base/check.h"

namespace vit::internal {

/// The file that a path leads to, links followed; of type not_found if there is none. Throws Error (io) with
/// the system's reason if it fails: a loop of links, a name too long, a folder that may not be
/// read.
inline std::filesystem::file_status load_status(const std::filesystem::path& path, const Where& where) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  VIT_CHECK(std::filesystem::status_known(status), where.with(ErrorKind::io), path.string(),
            ": cannot be examined: ", error.message());
  return status;
}

/// Whether there is something at a path that can be examined.
inline bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !error;
}

}  // namespace vit::internal
