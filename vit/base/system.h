// What the library asks of the operating system for files, folders, memory, sleep and shared libraries: the
// one header between the two, implemented by one source per system (system_posix.cpp). The callers state what
// failed; the reason is in errno, or in library_error().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace vit::internal::system {

/// What is recorded of an open file.
struct FileStatus {
  std::filesystem::file_type type = std::filesystem::file_type::unknown;
  std::size_t bytes = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  // of the last change of its contents
};

/// The number of a file that is open for reading; negative on failure. Opening a pipe waits for no writer.
/// Allocates nothing.
int open_file(const std::filesystem::path::value_type* path) noexcept;
std::optional<FileStatus> status_of(int file) noexcept;
/// Reads up to `out.size()` bytes from `begin` on; 0 at the end of the file, negative on failure.
std::ptrdiff_t read_at(int file, std::size_t begin, std::span<std::byte> out) noexcept;

/// A file to be written that has no name yet, in the folder of `path`; negative if the system has none, or
/// could not name it.
int create_nameless_file(const std::filesystem::path& path);
/// A new file to be written; negative if there is one of that name, and on failure.
int create_file(const std::filesystem::path& path) noexcept;
/// Gives a nameless file its name.
bool name_file(int file, const std::filesystem::path& path);
/// Writes some of `bytes`; negative on failure.
std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes) noexcept;
/// Returns once the contents are stored.
bool store_file(int file) noexcept;
/// Renames in one step and replaces an existing file.
bool rename_file(const std::filesystem::path& from, const std::filesystem::path& to) noexcept;
void remove_file(const std::filesystem::path& path) noexcept;
void close_file(int file) noexcept;

/// Closes an open file at the end of its scope, unless it is released.
class OpenFile {
 public:
  explicit OpenFile(int file) noexcept : file_(file) {}
  ~OpenFile() {
    if (file_ >= 0) close_file(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int value() const noexcept { return file_; }
  int release() noexcept { return std::exchange(file_, -1); }

 private:
  int file_;
};

/// A folder whose entries are read one by one.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& path);
  bool is_open() const noexcept { return folder_ != nullptr; }
  /// Moves to the next entry. False at the end, with errno 0, and on failure.
  bool next() noexcept;
  /// Of the entry: its name, valid until the next call, and its type, unknown if it is not recorded.
  std::string_view name() const noexcept { return name_; }
  std::filesystem::file_type type() const noexcept { return type_; }

 private:
  struct Close {
    void operator()(void* folder) const noexcept;
  };
  std::unique_ptr<void, Close> folder_;
  std::string_view name_;
  std::filesystem::file_type type_ = std::filesystem::file_type::unknown;
};

/// Sleeps until the value is no longer `old`.
void sleep_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;
/// Wakes threads that sleep on this value; it may be gone already.
void wake_one(std::atomic<std::uint32_t>& value) noexcept;
void wake_all(std::atomic<std::uint32_t>& value) noexcept;

/// Different from that of every other process that runs.
std::uint64_t process_id() noexcept;

/// Bytes that this process can use without taking memory from others: free memory and file caches of the
/// machine and of the process's control group, swap included. The largest number if the system does
/// not report it. Allocates nothing.
std::size_t available_memory() noexcept;
std::size_t page_bytes() noexcept;
/// Zeroed pages, null if there are none; `bytes` is a multiple of page_bytes().
void* map_pages(std::size_t bytes) noexcept;
/// Returns pages of one mapping, or some of them.
void unmap_pages(void* pages, std::size_t bytes) noexcept;
/// Asks for huge pages, which the system may deny.
void advise_huge_pages(void* pages, std::size_t bytes) noexcept;

/// A shared library, by the name that the loader knows; null on failure. It stays open.
void* open_library(const char* name) noexcept;
void* library_symbol(void* library, const char* name) noexcept;
/// The loader's reason of the last failure; may be null.
const char* library_error() noexcept;

}  // namespace vit::internal::system
