// A file in memory, for readers that want a path: a fuzzer opens thousands of them per second.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vit::fuzz {

class InMemoryFile {
 public:
  explicit InMemoryFile(std::string_view contents) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, contents.data(), contents.size()) != std::ssize(contents)) {
      throw std::runtime_error("no file in memory could be made");
    }
  }
  ~InMemoryFile() { ::close(descriptor_); }
  InMemoryFile(const InMemoryFile&) = delete;
  InMemoryFile& operator=(const InMemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace vit::fuzz
