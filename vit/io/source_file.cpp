// The POSIX part of SourceFile: open, fstat, pread.
#include "vit/io/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace vit::internal {
namespace {

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

/// Closes a descriptor unless it is released.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const noexcept { return descriptor_; }
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace

SourceFile::SourceFile(std::filesystem::path path, const Where& where)
    : path_(std::move(path)), where_(where) {
  const Where io = where.with(ErrorKind::io);
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.value() < 0) {
    const int error_number = errno;
    VIT_CHECK(error_number != ENOENT, io, path_.string(), ": no such file");
    fail(io, path_.string(), ": cannot be opened: ", reason(error_number));
  }
  struct stat status {};
  VIT_CHECK(::fstat(file.value(), &status) == 0, io, path_.string(), ": cannot be examined: ", reason(errno));
  VIT_CHECK(!S_ISDIR(status.st_mode), io, path_.string(), ": is a directory, expected a file");
  VIT_CHECK(S_ISREG(status.st_mode), io, path_.string(), ": is a pipe or device, expected a regular file");
  VIT_CHECK(status.st_size > 0, where, path_.string(), ": is empty (incomplete download?)");
  size_ = static_cast<std::size_t>(status.st_size);
  seconds_ = status.st_mtim.tv_sec;
  nanoseconds_ = status.st_mtim.tv_nsec;
  descriptor_ = file.release();
}

SourceFile::~SourceFile() {
  ::close(descriptor_);
}

void SourceFile::read(std::size_t begin, std::span<std::byte> out) const {
  const Where io = where_.with(ErrorKind::io);
  VIT_CHECK(begin <= size_ && out.size() <= size_ - begin, where_, path_.string(), ": has no bytes from ",
            begin, " to ", begin + out.size());
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    VIT_CHECK(got >= 0, io, path_.string(), ": cannot be read: ", reason(errno));
    VIT_CHECK(got > 0, io, path_.string(), ": was truncated while it was read");
    done += static_cast<std::size_t>(got);
  }
  check_unchanged();
}

void SourceFile::check_unchanged() const {
  const Where io = where_.with(ErrorKind::io);
  struct stat now {};
  VIT_CHECK(::fstat(descriptor_, &now) == 0, io, path_.string(), ": cannot be examined: ", reason(errno));
  VIT_CHECK(static_cast<std::size_t>(now.st_size) == size_ && now.st_mtim.tv_sec == seconds_ &&
                now.st_mtim.tv_nsec == nanoseconds_,
            io, path_.string(), ": was written while it was read; replace files by renaming");
}

std::string SourceFile::text(std::size_t begin, std::size_t count) const {
  const std::size_t first = std::min(begin, size_);
  std::string out(std::min(count, size_ - first), '\0');
  read(first, std::as_writable_bytes(std::span(out)));
  return out;
}

void refuse_download_leftovers(const SourceFile& file, std::string_view name, const Where& where) {
  const Where format = where.with(ErrorKind::format);
  const std::string start = file.text(0, 64);
  VIT_CHECK(!start.starts_with("version https://git-lfs"), format, name,
            ": contains no weights but a Git LFS pointer; fetch them with git lfs pull");
  for (const std::string_view page : {"<!DOCTYPE", "<!doctype", "<html", "<?xml"}) {
    VIT_CHECK(!start.starts_with(page), format, name,
              ": contains no weights but a web page; download the file itself");
  }
}

StoredBytes StoredBytes::part(std::size_t offset, std::size_t count) const noexcept {
  StoredBytes out = *this;
  if (memory_ != nullptr) out.memory_ += offset;
  if (file_ != nullptr) out.begin_ += offset;
  out.size_ = count;
  return out;
}

std::vector<std::byte> StoredBytes::copy() const {
  std::vector<std::byte> out(size_);
  read(0, out);
  return out;
}

void StoredBytes::read(std::size_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (file_ != nullptr) return file_->read(begin_ + offset, out);
  std::memcpy(out.data(), memory_ + offset, out.size());
}

}  // namespace vit::internal
