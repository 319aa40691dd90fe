// A file seen as read-only memory. Owns the mapping; what the bytes mean is for the readers of this folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "vit/base/check.h"

namespace vit::internal {

/// Maps a regular file for its own lifetime. Neither copied nor moved, so pointers into bytes() stay good:
/// share it with std::shared_ptr. Safe to read from several threads. The file must not be cut short while it
/// is mapped; whoever replaces a checkpoint writes the new one beside it and renames, as write_safetensors
/// does.
class MappedFile {
 public:
  /// Throws Error (io) if the path does not exist, is not a regular file or cannot be read, and one of the
  /// kind of `where` if the file is empty. `where` names the operation in the message.
  MappedFile(std::filesystem::path path, const Where& where);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  std::size_t size() const noexcept { return size_; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Tells the system that bytes [begin, end) have been consumed: their pages leave the memory of this
  /// process. Reading them again is allowed and fetches them again. The page that holds `end` stays, for the
  /// bytes that follow.
  void release(std::size_t begin, std::size_t end) const noexcept;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Throws Error (format) if the file is what a download leaves behind instead of weights: a pointer of Git
/// LFS or a web page. `name` is the file in the message.
void refuse_download_leftovers(const MappedFile& file, std::string_view name, const Where& where);

}  // namespace vit::internal
