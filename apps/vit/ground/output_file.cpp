#include "apps/vit/ground/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/file_status.h"

namespace vit::app {
using namespace internal;
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_errno(const fs::path& path, const char* what) {
  const int error = errno;
  fail("write", path.string(), ": ", what, ": ", std::strerror(error));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// A new file in the folder of `path`, already unlinked.
int open_nameless(const fs::path& path) {
  std::string pattern = (folder_of(path) / ".vit-scratch-XXXXXX").string();
  const int descriptor = ::mkstemp(pattern.data());
  if (descriptor < 0) fail_errno(path, "cannot write into its folder");
  ::unlink(pattern.c_str());
  return descriptor;
}

void write_all(std::FILE* file, std::span<const std::byte> bytes, const fs::path& path) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
    fail_errno(path, "writing failed");
  }
}

/// Whether the name still refers to the open file; false once another run has renamed it.
bool is_same_file(int descriptor, const fs::path& path) {
  struct stat opened, named;
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// Appends the contents of the file at `from` and syncs it to disk.
void append_file(const fs::path& from, std::FILE* file, const fs::path& path) {
  std::ifstream source(from, std::ios::binary);
  VIT_CHECK(source.is_open(), "resume", from.string(), ": cannot be read");
  std::vector<char> block(1 << 20);
  while (source.read(block.data(), static_cast<std::streamsize>(block.size())) || source.gcount() > 0) {
    write_all(file, std::as_bytes(std::span(block).first(static_cast<std::size_t>(source.gcount()))), path);
  }
  VIT_CHECK(!source.bad(), "resume", from.string(), ": cannot be read to its end");
  if (std::fflush(file) != 0 || ::fsync(::fileno(file)) != 0) fail_errno(path, "writing failed");
}

}  // namespace

FileHandle open_locked(const fs::path& path, int flags) {
  // Without O_NONBLOCK, opening a pipe could wait for the other end.
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
  VIT_CHECK(descriptor >= 0 || errno != ELOOP, "write", path.string(),
            ": is a symbolic link, expected a regular file");
  if (descriptor < 0) fail_errno(path, "cannot be written");
  FileHandle file(::fdopen(descriptor, "r+b"));
  if (!file) {
    ::close(descriptor);
    fail_errno(path, "cannot be written");
  }
  struct stat status;
  VIT_CHECK(::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode), "write", path.string(),
            ": is a pipe or device, expected a regular file");
  VIT_CHECK(::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_same_file(descriptor, path), "write",
            path.string(), ": another run is writing this file");
  return file;
}

void check_output_place(const fs::path& path) {
  std::error_code ignored;
  VIT_CHECK(fs::is_directory(folder_of(path), ignored), "write", path.string(), ": the folder ",
            folder_of(path).string(), " does not exist");
  const fs::file_status status = load_status(path, "write");
  VIT_CHECK(!fs::is_directory(status), "write", path.string(), ": is a folder");
  VIT_CHECK(!fs::exists(status) || fs::is_regular_file(status), "write", path.string(),
            ": is a pipe or device, expected a regular file");
  // The longest name that is created in the folder: AtomicFile's, with process and serial number.
  struct stat unused;
  const std::string longest = path.string() + ".part-4294967295-4294967295";
  if (::lstat(longest.c_str(), &unused) != 0 && errno != ENOENT) fail_errno(path, "is not a valid name");
  ::close(open_nameless(path));
}

fs::path ResumableFile::partial_path(const fs::path& path) {
  return path.string() + ".partial";
}

ResumableFile::ResumableFile(const fs::path& path, Start start) : path_(path) {
  check_output_place(path);
  const fs::path partial = partial_path(path);
  file_ = open_locked(partial, O_CREAT);
  if (start == Start::empty && ::ftruncate(::fileno(file_.get()), 0) != 0)
    fail_errno(partial, "cannot be emptied");
  if (::fseeko(file_.get(), 0, SEEK_END) != 0) fail_errno(partial, "cannot be continued");
  size_ = static_cast<std::size_t>(::ftello(file_.get()));
}

ResumableFile::~ResumableFile() {
  if (committed_ || (size_ > 0 && !is_mere_copy_)) return;
  const fs::path partial = partial_path(path_);
  if (is_same_file(::fileno(file_.get()), partial)) ::unlink(partial.c_str());
}

void ResumableFile::copy_finished() {
  VIT_CHECK(size_ == 0, "resume", partial_path(path_).string(), ": is written already");
  const fs::path partial = partial_path(path_);
  // Named when complete: an interruption must not look like a shorter run. Locked before it has the name,
  // and the file that has it now is locked until then, so no other run finds an unlocked file.
  const fs::path copy = text(partial.string(), "-", ::getpid());
  FileHandle file = open_locked(copy, O_CREAT | O_EXCL);
  try {
    append_file(path_, file.get(), copy);
    if (std::rename(copy.c_str(), partial.c_str()) != 0) fail_errno(partial, "cannot be renamed");
  } catch (...) {
    ::unlink(copy.c_str());
    throw;
  }
  file_ = std::move(file);
  size_ = static_cast<std::size_t>(::ftello(file_.get()));
  is_mere_copy_ = true;
}

void ResumableFile::write(std::string_view text) {
  write_all(file_.get(), std::as_bytes(std::span(text)), partial_path(path_));
  size_ += text.size();
  is_mere_copy_ = false;
}

void ResumableFile::truncate(std::size_t bytes) {
  if (std::fflush(file_.get()) != 0 || ::ftruncate(::fileno(file_.get()), static_cast<off_t>(bytes)) != 0 ||
      ::fseeko(file_.get(), 0, SEEK_END) != 0) {
    fail_errno(partial_path(path_), "cannot be truncated");
  }
  size_ = bytes;
}

void ResumableFile::flush() {
  if (std::fflush(file_.get()) != 0) fail_errno(partial_path(path_), "writing failed");
}

void ResumableFile::commit() {
  flush();
  if (::fsync(::fileno(file_.get())) != 0) fail_errno(partial_path(path_), "writing failed");
  VIT_CHECK(is_same_file(::fileno(file_.get()), partial_path(path_)), "write", partial_path(path_).string(),
            ": was removed or replaced while this run was writing it");
  if (std::rename(partial_path(path_).c_str(), path_.c_str()) != 0) fail_errno(path_, "cannot be renamed");
  committed_ = true;
}

Spool::Spool(const fs::path& beside) : beside_(beside) {
  const int descriptor = open_nameless(beside);
  file_.reset(::fdopen(descriptor, "w+b"));
  if (!file_) {
    ::close(descriptor);
    fail_errno(beside, "cannot create a scratch file");
  }
}

Spool::Spool(Spool&& other) noexcept
    : beside_(std::move(other.beside_)),
      file_(std::move(other.file_)),
      size_(other.size_),
      mapped_(std::exchange(other.mapped_, nullptr)),
      mapped_bytes_(other.mapped_bytes_) {}

Spool::~Spool() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

void Spool::append(std::span<const std::byte> bytes) {
  write_all(file_.get(), bytes, beside_);
  size_ += bytes.size();
}

std::span<const std::byte> Spool::view() {
  if (std::fflush(file_.get()) != 0) fail_errno(beside_, "writing failed");
  if (mapped_ != nullptr) ::munmap(std::exchange(mapped_, nullptr), mapped_bytes_);
  if (size_ == 0) return {};
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, ::fileno(file_.get()), 0);
  if (mapped == MAP_FAILED) fail_errno(beside_, "cannot read the scratch file back");
  mapped_ = mapped;
  mapped_bytes_ = size_;
  return {static_cast<const std::byte*>(mapped), size_};
}

}  // namespace vit::app
