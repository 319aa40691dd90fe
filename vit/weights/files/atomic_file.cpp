// The POSIX side of AtomicFile: exclusive creation, fsync, rename.
#include "vit/weights/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {

AtomicFile::AtomicFile(std::filesystem::path path, std::string_view where)
    : path_(std::move(path)), where_(where) {
  static std::atomic<unsigned> serial{0};  // several threads may write files of one name
  temporary_ = path_;
  temporary_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(serial.fetch_add(1));
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse("created");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::refuse(std::string_view action) const {
  fail(where_, path_.string(), ": cannot be ", action, ": ", std::generic_category().message(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse("written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) refuse("written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("renamed into place");
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace vit::internal
