// Storage of results until they are complete: a partial file that a later run can continue, and nameless
// scratch files for arrays that get their final order at the end. Files written at once use
// vit/io/atomic_file.h.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace vit::app {

struct FileCloser {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, FileCloser>;

/// Throws Error unless a file can be created at `path`: its folder is writable, and no folder, pipe
/// or device has that name.
void check_output_place(const std::filesystem::path& path);

/// Opens a regular file for reading and writing, with additional flags of open(2), and locks it.
/// Throws Error if it is something else, or another run has the lock.
FileHandle open_locked(const std::filesystem::path& path, int flags);

/// Writes to PATH.partial; commit() renames it to PATH. Without commit() the data stays there for a
/// run that continues it. One run at a time: the file is locked.
class ResumableFile {
 public:
  enum class Start {
    empty,     // the contents of PATH.partial are discarded
    continued  // kept, and writing continues at the end
  };

  /// Throws Error if PATH cannot be written, if PATH.partial is not a regular file, or if another
  /// run is writing it.
  explicit ResumableFile(const std::filesystem::path& path, Start start = Start::empty);
  ~ResumableFile();
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;

  static std::filesystem::path partial_path(const std::filesystem::path& path);

  /// Starts with a copy of PATH, if nothing was written yet. Such a copy is useless to a later run
  /// unless more is written.
  void copy_finished();
  void write(std::string_view text);
  /// Drops everything after the first `bytes` bytes.
  void truncate(std::size_t bytes);
  /// Passes everything to the operating system, so that it survives the end of this process.
  void flush();
  /// Bytes written so far, or found at the start.
  std::size_t size() const noexcept { return size_; }
  /// Throws Error if another file has taken the name PATH.partial meanwhile.
  void commit();

 private:
  std::filesystem::path path_;
  FileHandle file_;
  std::size_t size_ = 0;
  bool is_mere_copy_ = false;
  bool committed_ = false;
};

/// A nameless scratch file in the folder of `beside`: it vanishes when the process ends for any reason.
class Spool {
 public:
  explicit Spool(const std::filesystem::path& beside);
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;
  ~Spool();

  void append(std::span<const std::byte> bytes);
  std::size_t size() const noexcept { return size_; }
  /// Everything appended so far, mapped into memory; valid until the next append.
  std::span<const std::byte> view();

 private:
  std::filesystem::path beside_;
  FileHandle file_;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace vit::app
