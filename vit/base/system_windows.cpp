// Windows. Names of files in `char` are UTF-8, as the C++ library of MinGW-w64 has it.
#ifdef _WIN32

#include <fcntl.h>
#include <io.h>
// without its macros min and max
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

#include "vit/base/system.h"

namespace vit::internal::system {
namespace {

namespace fs = std::filesystem;

constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;  // as on other systems
constexpr std::size_t kMostBytes = std::size_t{1} << 30;                             // of one read or write

/// Sets errno to what the system's last error means.
void set_errno() noexcept {
  const DWORD last = ::GetLastError();
  const std::error_condition meant =
      std::error_code(static_cast<int>(last), std::system_category()).default_error_condition();
  errno = meant.category() == std::generic_category() ? meant.value() : EIO;
}

HANDLE handle_of(int file) noexcept {
  return reinterpret_cast<HANDLE>(::_get_osfhandle(file));
}

/// The number of an open handle, which it owns.
int number_of(HANDLE handle, int flags) noexcept {
  if (handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return -1;
  }
  const int file =
      ::_open_osfhandle(reinterpret_cast<std::intptr_t>(handle), flags | _O_BINARY | _O_NOINHERIT);
  if (file < 0) ::CloseHandle(handle);
  return file;
}

fs::file_type type_of(DWORD attributes) noexcept {
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0)
    return fs::file_type::unknown;  // a link, or a file elsewhere
  return (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? fs::file_type::directory : fs::file_type::regular;
}

/// A search of the system, whose first entry is found when it begins.
struct Search {
  HANDLE handle = INVALID_HANDLE_VALUE;
  bool is_first = true;
  WIN32_FIND_DATAW entry{};
  std::array<char, 3 * MAX_PATH> name{};  // a UTF-16 unit has up to three bytes in UTF-8
};

thread_local DWORD last_library_error = 0;

}  // namespace

int open_file(const wchar_t* path) noexcept {
  return number_of(::CreateFileW(path, GENERIC_READ, kShareAll, nullptr, OPEN_EXISTING,
                                 FILE_FLAG_BACKUP_SEMANTICS /* folders too */, nullptr),
                   _O_RDONLY);
}

std::optional<FileStatus> status_of(int file) noexcept {
  const HANDLE handle = handle_of(file);
  if (::GetFileType(handle) != FILE_TYPE_DISK) return FileStatus{};
  BY_HANDLE_FILE_INFORMATION found{};
  if (::GetFileInformationByHandle(handle, &found) == 0) {
    set_errno();
    return std::nullopt;
  }
  // in units of 100 nanoseconds since 1601
  constexpr std::int64_t kPerSecond = 10'000'000, kSecondsTo1970 = 11'644'473'600;
  const std::int64_t written = (static_cast<std::int64_t>(found.ftLastWriteTime.dwHighDateTime) << 32) |
                               static_cast<std::int64_t>(found.ftLastWriteTime.dwLowDateTime);
  return FileStatus{.type = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0
                                ? fs::file_type::directory
                                : fs::file_type::regular,
                    .bytes = (static_cast<std::size_t>(found.nFileSizeHigh) << 32) | found.nFileSizeLow,
                    .seconds = written / kPerSecond - kSecondsTo1970,
                    .nanoseconds = written % kPerSecond * 100};
}

std::ptrdiff_t read_at(int file, std::size_t begin, std::span<std::byte> out) noexcept {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(begin);
  place.OffsetHigh = static_cast<DWORD>(begin >> 32);
  DWORD got = 0;
  const DWORD wanted = static_cast<DWORD>(std::min(out.size(), kMostBytes));
  if (::ReadFile(handle_of(file), out.data(), wanted, &got, &place) != 0)
    return static_cast<std::ptrdiff_t>(got);
  if (::GetLastError() == ERROR_HANDLE_EOF) return 0;
  set_errno();
  return -1;
}

int create_nameless_file(const fs::path& /*path*/) {
  errno = ENOTSUP;
  return -1;
}

int create_file(const fs::path& path) noexcept {
  return number_of(::CreateFileW(path.c_str(), GENERIC_WRITE, kShareAll, nullptr, CREATE_NEW,
                                 FILE_ATTRIBUTE_NORMAL, nullptr),
                   _O_WRONLY);
}

bool name_file(int /*file*/, const fs::path& /*path*/) {
  errno = ENOTSUP;
  return false;
}

std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes) noexcept {
  DWORD written = 0;
  const DWORD wanted = static_cast<DWORD>(std::min(bytes.size(), kMostBytes));
  if (::WriteFile(handle_of(file), bytes.data(), wanted, &written, nullptr) != 0)
    return static_cast<std::ptrdiff_t>(written);
  set_errno();
  return -1;
}

bool store_file(int file) noexcept {
  if (::FlushFileBuffers(handle_of(file)) != 0) return true;
  set_errno();
  return false;
}

bool rename_file(const fs::path& from, const fs::path& to) noexcept {
  if (::MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0)
    return true;
  set_errno();
  return false;
}

void remove_file(const fs::path& path) noexcept {
  ::DeleteFileW(path.c_str());
}
void close_file(int file) noexcept {
  ::_close(file);
}

Folder::Folder(const fs::path& path) {
  auto search = std::make_unique<Search>();
  search->handle = ::FindFirstFileExW((path / L"*").c_str(), FindExInfoBasic, &search->entry,
                                      FindExSearchNameMatch, nullptr, FIND_FIRST_EX_LARGE_FETCH);
  if (search->handle == INVALID_HANDLE_VALUE) {
    set_errno();
    return;
  }
  folder_.reset(search.release());
}

void Folder::Close::operator()(void* folder) const noexcept {
  const std::unique_ptr<Search> search(static_cast<Search*>(folder));
  ::FindClose(search->handle);
}

bool Folder::next() noexcept {
  Search& search = *static_cast<Search*>(folder_.get());
  errno = 0;  // distinguishes the end from a failure
  if (!search.is_first && ::FindNextFileW(search.handle, &search.entry) == 0) {
    if (::GetLastError() != ERROR_NO_MORE_FILES) set_errno();
    return false;
  }
  search.is_first = false;
  const int bytes =
      ::WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, search.entry.cFileName, -1, search.name.data(),
                            static_cast<int>(search.name.size()), nullptr, nullptr);
  if (bytes == 0) {  // half of a surrogate pair
    errno = EILSEQ;
    return false;
  }
  name_ = {search.name.data(), static_cast<std::size_t>(bytes) - 1};
  type_ = type_of(search.entry.dwFileAttributes);
  return true;
}

// Not std::atomic::wait: away from Linux, libstdc++ 12 loses a call that wakes while the other thread falls
// asleep.
void sleep_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  while (value == old)
    ::WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&value), &old, sizeof old, INFINITE);
}
void wake_one(std::atomic<std::uint32_t>& value) noexcept {
  ::WakeByAddressSingle(&value);
}
void wake_all(std::atomic<std::uint32_t>& value) noexcept {
  ::WakeByAddressAll(&value);
}

std::uint64_t process_id() noexcept {
  return ::GetCurrentProcessId();
}

std::size_t available_memory() noexcept {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (::GlobalMemoryStatusEx(&status) == 0) return std::numeric_limits<std::size_t>::max();
  return status.ullAvailPageFile;
}

std::size_t page_bytes() noexcept {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  return info.dwPageSize;
}

void* map_pages(std::size_t bytes) noexcept {
  return ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

// Addresses are returned as a whole only: with the last pages of a mapping.
void unmap_pages(void* pages, std::size_t bytes) noexcept {
  MEMORY_BASIC_INFORMATION region{};
  if (::VirtualQuery(pages, &region, sizeof region) == 0) return;
  void* const mapping = region.AllocationBase;
  ::VirtualFree(pages, bytes, MEM_DECOMMIT);
  for (char* at = static_cast<char*>(mapping);
       ::VirtualQuery(at, &region, sizeof region) != 0 && region.AllocationBase == mapping;
       at += region.RegionSize) {
    if (region.State == MEM_COMMIT) return;
  }
  ::VirtualFree(mapping, 0, MEM_RELEASE);
}

void advise_huge_pages(void* /*pages*/, std::size_t /*bytes*/) noexcept {
}  // they are for processes with a privilege

void* open_library(const char* name) noexcept {
  void* const library = reinterpret_cast<void*>(::LoadLibraryA(name));
  last_library_error = ::GetLastError();
  return library;
}
void* library_symbol(void* library, const char* name) noexcept {
  void* const symbol = reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
  last_library_error = ::GetLastError();
  return symbol;
}
const char* library_error() noexcept {
  thread_local std::array<char, 512> text;
  const DWORD size = ::FormatMessageA(
      FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK, nullptr,
      last_library_error, 0, text.data(), static_cast<DWORD>(text.size()), nullptr);
  return size == 0 ? nullptr : text.data();
}

}  // namespace vit::internal::system

#endif
