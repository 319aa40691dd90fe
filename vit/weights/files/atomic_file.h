// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/error.h"

namespace vit::internal {

/// Writes beside `path` and renames in commit(); without commit() the destructor removes what was written and
/// a former file of that name stays as it was. Every failure is an Error (io) that names the file and the
/// system's reason.
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
  std::filesystem::path temporary_;
  std::string where_;
  int descriptor_ = -1;
};

}  // namespace vit::internal
