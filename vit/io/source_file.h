// A file whose bytes are read on demand. Never memory-mapped: a file that is truncated while it is
// in use would end the process with a signal. The readers of this folder interpret the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {

/// A regular file, open for the lifetime of the object; a new file under the same name does not affect it.
/// Safe to read from several threads.
class SourceFile {
 public:
  /// Throws Error (io) if the path does not exist, is not a regular file or cannot be read, and one of the
  /// kind of `where` if the file is empty. `where`, whose text must outlive this, names the operation in the
  /// messages.
  SourceFile(std::filesystem::path path, const Where& where);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  std::size_t size() const noexcept { return size_; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Fills `out` with the bytes from `begin` on, which must lie within size(). Allocates nothing. Throws
  /// Error (io) if the system fails to read, and if the file was written or truncated since it was opened:
  /// data read before might then be inconsistent with data read now.
  void read(std::size_t begin, std::span<std::byte> out) const;
  /// The bytes from `begin` on, `count` or all remaining ones if there are fewer.
  std::string text(std::size_t begin, std::size_t count) const;
  /// The whole file.
  std::string text() const { return text(0, size_); }

 private:
  void check_unchanged() const;

  std::filesystem::path path_;
  Where where_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::int64_t seconds_ = 0, nanoseconds_ = 0;  // of the last change of its contents
};

/// Throws Error (format) if the file is the result of a failed download instead of weights: a pointer of Git
/// LFS or a web page. `name` is the file in the message.
void refuse_download_leftovers(const SourceFile& file, std::string_view name, const Where& where);

/// Bytes in memory, or in a file from which they are read. Owns neither.
class StoredBytes {
 public:
  StoredBytes() = default;
  StoredBytes(std::span<const std::byte> memory) noexcept : memory_(memory.data()), size_(memory.size()) {}
  StoredBytes(const SourceFile& file, std::size_t begin, std::size_t size) noexcept
      : file_(&file), begin_(begin), size_(size) {}

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Their start in the file; 0 in memory.
  std::size_t begin() const noexcept { return begin_; }

  /// `count` bytes from `offset` on, which must lie within.
  StoredBytes part(std::size_t offset, std::size_t count) const noexcept;
  /// Copies the bytes from `offset` on, which must lie within. Throws as SourceFile::read does.
  void read(std::size_t offset, std::span<std::byte> out) const;
  /// All of them.
  std::vector<std::byte> copy() const;

 private:
  const std::byte* memory_ = nullptr;
  const SourceFile* file_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace vit::internal
