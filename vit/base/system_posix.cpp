// Linux and other systems with POSIX.
#ifndef _WIN32

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include "vit/base/system.h"

namespace vit::internal::system {
namespace {

namespace fs = std::filesystem;

fs::file_type type_of(const dirent& entry) noexcept {
  switch (entry.d_type) {
    case DT_REG: return fs::file_type::regular;
    case DT_DIR: return fs::file_type::directory;
    case DT_LNK: return fs::file_type::symlink;
    case DT_BLK: return fs::file_type::block;
    case DT_CHR: return fs::file_type::character;
    case DT_FIFO: return fs::file_type::fifo;
    case DT_SOCK: return fs::file_type::socket;
    default: return fs::file_type::unknown;
  }
}

const timespec& change_of(const struct stat& status) noexcept {
#ifdef __APPLE__
  return status.st_mtimespec;
#else
  return status.st_mtim;
#endif
}

#ifdef O_TMPFILE
/// The path from which an open file can be linked.
std::string name_of(int file) {
  return "/proc/self/fd/" + std::to_string(file);
}
#endif

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

#ifdef __linux__

/// The start of a small system file, empty if there is none.
class SystemText {
 public:
  explicit SystemText(const char* path) noexcept {
    const OpenFile file(open_file(path));
    if (file.value() < 0) return;
    const std::ptrdiff_t got = read_at(file.value(), 0, std::as_writable_bytes(std::span(bytes_)));
    size_ = got < 0 ? 0 : static_cast<std::size_t>(got);
  }

  /// The number after `name` at the start of a line, or at the start of the text if `name` is empty.
  std::size_t number(std::string_view name, std::size_t otherwise) const noexcept {
    std::string_view text(bytes_.data(), size_);
    while (!text.empty() && !text.starts_with(name))
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(std::min(name.size(), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? value : otherwise;
  }

 private:
  std::array<char, 8192> bytes_;
  std::size_t size_ = 0;
};

std::size_t available_to_machine() noexcept {
  const SystemText text("/proc/meminfo");  // in units of 1024 bytes
  const std::size_t available = text.number("MemAvailable:", kUnknown);
  if (available >= kUnknown / 2048) return kUnknown;
  return 1024 * (available + text.number("SwapFree:", 0));
}

std::size_t available_to_group() noexcept {
  const std::size_t most = SystemText("/sys/fs/cgroup/memory.max").number("", kUnknown);  // "max": no limit
  const std::size_t taken = SystemText("/sys/fs/cgroup/memory.current").number("", kUnknown);
  if (most == kUnknown || taken == kUnknown) return kUnknown;
  const SystemText statistics("/sys/fs/cgroup/memory.stat");
  const std::size_t caches = statistics.number("inactive_file ", 0) + statistics.number("active_file ", 0);
  return most - std::min(most, taken - std::min(taken, caches));
}

#endif

}  // namespace

int open_file(const char* path) noexcept {
  return ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

std::optional<FileStatus> status_of(int file) noexcept {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  fs::file_type type = fs::file_type::unknown;
  if (S_ISREG(status.st_mode)) type = fs::file_type::regular;
  if (S_ISDIR(status.st_mode)) type = fs::file_type::directory;
  return FileStatus{.type = type,
                    .bytes = static_cast<std::size_t>(status.st_size),
                    .seconds = change_of(status).tv_sec,
                    .nanoseconds = change_of(status).tv_nsec};
}

std::ptrdiff_t read_at(int file, std::size_t begin, std::span<std::byte> out) noexcept {
  while (true) {
    const ssize_t got = ::pread(file, out.data(), out.size(), static_cast<off_t>(begin));
    if (got >= 0 || errno != EINTR) return got;
  }
}

int create_nameless_file([[maybe_unused]] const fs::path& path) {
#ifdef O_TMPFILE
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int file = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (file < 0 || ::access(name_of(file).c_str(), F_OK) == 0) return file;
  ::close(file);
#endif
  return -1;
}

int create_file(const fs::path& path) noexcept {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

bool name_file([[maybe_unused]] int file, [[maybe_unused]] const fs::path& path) {
#ifdef O_TMPFILE
  const std::string source = name_of(file);
  return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
#else
  errno = ENOTSUP;
  return false;
#endif
}

std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes) noexcept {
  while (true) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0 || errno != EINTR) return written;
  }
}

bool store_file(int file) noexcept {
  return ::fsync(file) == 0;
}
bool rename_file(const fs::path& from, const fs::path& to) noexcept {
  return std::rename(from.c_str(), to.c_str()) == 0;
}
void remove_file(const fs::path& path) noexcept {
  ::unlink(path.c_str());
}
void close_file(int file) noexcept {
  ::close(file);
}

Folder::Folder(const fs::path& path) : folder_(::opendir(path.c_str())) {}

void Folder::Close::operator()(void* folder) const noexcept {
  ::closedir(static_cast<DIR*>(folder));
}

bool Folder::next() noexcept {
  errno = 0;  // distinguishes the end from a failure
  const dirent* const entry = ::readdir(static_cast<DIR*>(folder_.get()));
  if (entry == nullptr) return false;
  name_ = entry->d_name;
  type_ = type_of(*entry);
  return true;
}

void sleep_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  value.wait(old);
}
void wake_one(std::atomic<std::uint32_t>& value) noexcept {
  value.notify_one();
}
void wake_all(std::atomic<std::uint32_t>& value) noexcept {
  value.notify_all();
}

std::uint64_t process_id() noexcept {
  return static_cast<std::uint64_t>(::getpid());
}

std::size_t available_memory() noexcept {
#ifdef __linux__  // /proc/meminfo, and the files of version 2 of control groups
  return std::min(available_to_machine(), available_to_group());
#else
  return kUnknown;  // no call reports it
#endif
}

std::size_t page_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void* map_pages(std::size_t bytes) noexcept {
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}
void unmap_pages(void* pages, std::size_t bytes) noexcept {
  ::munmap(pages, bytes);
}
void advise_huge_pages([[maybe_unused]] void* pages, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  ::madvise(pages, bytes, MADV_HUGEPAGE);
#endif
}

void* open_library(const char* name) noexcept {
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
void* library_symbol(void* library, const char* name) noexcept {
  return ::dlsym(library, name);
}
const char* library_error() noexcept {
  return ::dlerror();
}

}  // namespace vit::internal::system

#endif
