// The POSIX part of AtomicFile: nameless or exclusive creation, fsync, link and rename.
#include "vit/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

/// The path from which a descriptor can be linked.
std::string name_of(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// A nameless file in the folder of `path`; negative if the system cannot create one, or could not name
/// it.
int open_nameless(const std::filesystem::path& path) {
#ifdef O_TMPFILE
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::access(name_of(descriptor).c_str(), F_OK) == 0) return descriptor;
  ::close(descriptor);
#endif
  return -1;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, const Where& where)
    : path_(std::move(path)), where_(where.operation()) {
  static std::atomic<unsigned> serial{0};  // several threads may write files of one name
  temporary_ = path_;
  temporary_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(serial.fetch_add(1));
  descriptor_ = open_nameless(path_);
  if (descriptor_ >= 0) return;
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse("created");
  has_name_ = true;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (has_name_) ::unlink(temporary_.c_str());
}

void AtomicFile::refuse(std::string_view action) const {
  fail(Where(where_, ErrorKind::io), path_.string(), ": cannot be ", action, ": ",
       std::generic_category().message(errno));
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
  if (!has_name_) {
    const std::string source = name_of(descriptor_);
    if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      refuse("renamed into place");
    has_name_ = true;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("renamed into place");
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace vit::internal
