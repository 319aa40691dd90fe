// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/check.h"

namespace vit::internal {

/// Writes beside `path`, where the file system can into a file without a name, and gives it the name in
/// commit(); without commit() what was written is gone and a former file of that name stays as it was. So a
/// process that is killed leaves nothing behind, but on file systems that name every file. Every failure is
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
  std::filesystem::path temporary_;  // the name before the last
  bool has_name_ = false;            // whether the file bears it
  std::string where_;
  int descriptor_ = -1;
};

}  // namespace vit::internal
