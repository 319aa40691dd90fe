// The POSIX side of MappedFile: open, fstat, mmap, madvise.
#include "vit/weights/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

/// Closes a descriptor at the end of the scope; the mapping outlives it.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path, const Where& where) : path_(std::move(path)) {
  const Where io = where.with(ErrorKind::io);
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
  void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value(), 0);
  VIT_CHECK(address != MAP_FAILED, io, path_.string(), ": ", size_,
            " bytes cannot be mapped: ", reason(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::size_t begin, std::size_t end) const noexcept {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  end = std::min(end, size_);
  const std::size_t first = begin / page * page;
  const std::size_t last = end == size_ ? size_ : end / page * page;
  // Only advice: where the system declines, the pages stay a little longer.
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

void refuse_download_leftovers(const MappedFile& file, std::string_view name, const Where& where) {
  const Where format = where.with(ErrorKind::format);
  const std::string_view start = file.text().substr(0, 64);
  VIT_CHECK(!start.starts_with("version https://git-lfs"), format, name,
            ": holds no weights but a pointer of Git LFS; fetch them with git lfs pull");
  for (const std::string_view page : {"<!DOCTYPE", "<!doctype", "<html", "<?xml"}) {
    VIT_CHECK(!start.starts_with(page), format, name,
              ": holds no weights but a web page; download the file itself");
  }
}

}  // namespace vit::internal
