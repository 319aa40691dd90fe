// Writes a .zip archive of stored members, as numpy.savez does: no compression, zip64 if sizes require it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/atomic_file.h"

namespace vit::app {

class ZipWriter {
 public:
  /// Sizes from which the 64-bit records are used; tests lower it.
  static constexpr std::uint64_t kZip64From = 0xFFFFFFFF;

  explicit ZipWriter(internal::AtomicFile& file, std::uint64_t zip64_from = kZip64From)
      : file_(file), zip64_from_(zip64_from) {}

  /// One member, its bytes given in parts. Throws Error if the file cannot be written.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  /// Writes the directory; nothing may be added afterwards.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint32_t crc = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // of its local header
  };
  void write(std::string_view bytes);

  internal::AtomicFile& file_;
  std::uint64_t zip64_from_;
  std::uint64_t position_ = 0;
  std::vector<Member> members_;
};

}  // namespace vit::app
