// Image files inside an uncompressed .tar file, such as a WebDataset shard: the entries of its headers, and
// the bytes of members. Members are read in place, in any order and by several threads; nothing is
// unpacked. libarchive reads the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/vit/ground/output_file.h"

namespace vit::app {

/// The byte range of a member in its archive.
struct TarRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// An entry of an archive.
struct TarEntry {
  enum class Kind {
    file,
    sparse,  // a file with holes, whose bytes are not contiguous
    folder,
    other,  // a link or a device
  };
  std::string name;  // as the archive spells it
  Kind kind = Kind::other;
  TarRange range{};  // of a file
};

class TarArchive {
 public:
  /// Throws Error if there is no such file, or it is not a regular file.
  explicit TarArchive(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Calls `visit` for each entry in order, including those with equal names. Throws Error if the archive is
  /// damaged, truncated, compressed or not an archive, after the entries before; and in builds without
  /// libarchive.
  void list(const std::function<void(const TarEntry&)>& visit) const;
  /// The bytes of a member. Throws Error if they cannot be read, or the archive has changed since it was
  /// opened.
  std::vector<std::byte> read(TarRange range) const;

 private:
  /// Throws Error if the file is not the one that the constructor opened.
  FileHandle open() const;

  std::filesystem::path path_;
  std::uint64_t device_ = 0, inode_ = 0, size_ = 0;
  std::timespec modified_{};
};

}  // namespace vit::app
