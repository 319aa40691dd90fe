// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/check.h"

namespace vit::internal {

/// Writes into the folder of `path`, to a nameless file if the file system supports it, and gives it the name
/// in commit(); without commit() the data is discarded and an existing file of that name is unchanged. So a
/// killed process leaves no files, except on file systems without nameless files. Every failure is
/// an Error (io) that names the file and the system's reason.
class AtomicFile {
 public:
  AtomicFile(std::filesystem::path path, const Where& where);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void refuse(std::string_view action) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // the temporary name
  bool has_name_ = false;            // whether the file has it
  std::string where_;
  int descriptor_ = -1;
};

}  // namespace vit::internal
