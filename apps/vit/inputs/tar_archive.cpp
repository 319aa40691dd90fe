// The part of TarArchive that needs no library: the identity of the file, and the bytes of members.
#include "apps/vit/inputs/tar_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"tar", ErrorKind::io};
constexpr std::uint64_t kMaxMemberBytes = std::uint64_t{16} << 30;  // more than any supported image file

/// Opens a regular file and returns its status.
FileHandle open_regular(const std::filesystem::path& path, struct stat& status) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  VIT_CHECK(descriptor >= 0 || errno != ENOENT, kWhere, path.string(), ": no such file");
  FileHandle file(descriptor < 0 ? nullptr : ::fdopen(descriptor, "rb"));
  VIT_CHECK(file != nullptr && ::fstat(descriptor, &status) == 0, kWhere, path.string(),
            ": cannot be opened: ", std::strerror(errno));
  VIT_CHECK(S_ISREG(status.st_mode), kWhere, path.string(), ": is a pipe or device, expected a regular file");
  return file;
}

}  // namespace

TarArchive::TarArchive(std::filesystem::path path) : path_(std::move(path)) {
  struct stat status {};
  open_regular(path_, status);
  VIT_CHECK(status.st_size > 0, kWhere.with(ErrorKind::format), path_.string(),
            ": is empty (incomplete download?)");
  device_ = status.st_dev;
  inode_ = status.st_ino;
  size_ = static_cast<std::uint64_t>(status.st_size);
  modified_ = status.st_mtim;
}

FileHandle TarArchive::open() const {
  struct stat status {};
  FileHandle file = open_regular(path_, status);
  VIT_CHECK(status.st_dev == device_ && status.st_ino == inode_ &&
                static_cast<std::uint64_t>(status.st_size) == size_ &&
                status.st_mtim.tv_sec == modified_.tv_sec && status.st_mtim.tv_nsec == modified_.tv_nsec,
            kWhere, path_.string(), ": has changed since its members were listed");
  return file;
}

std::vector<std::byte> TarArchive::read(TarRange range) const {
  VIT_CHECK(range.size > 0, kWhere.with(ErrorKind::format), "the member is empty");
  VIT_CHECK(range.size <= kMaxMemberBytes, kWhere.with(ErrorKind::unsupported), "a member of ", range.size,
            " bytes is too large for an image");
  const FileHandle file = open();
  std::vector<std::byte> bytes(range.size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(::fileno(file.get()), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(range.offset + done));
    if (got < 0 && errno == EINTR) continue;
    VIT_CHECK(got >= 0, kWhere, path_.string(), ": reading failed: ", std::strerror(errno));
    VIT_CHECK(got > 0, kWhere, path_.string(), ": ends inside the member");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace vit::app
