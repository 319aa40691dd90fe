#include "vit/io/source_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "vit/base/system.h"

namespace vit::internal {
namespace {

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

SourceFile::SourceFile(std::filesystem::path path, const Where& where)
    : path_(std::move(path)), where_(where) {
  const Where io = where.with(ErrorKind::io);
  system::OpenFile file(system::open_file(path_.c_str()));
  if (file.value() < 0) {
    const int error_number = errno;
    VIT_CHECK(error_number != ENOENT, io, path_.string(), ": no such file");
    fail(io, path_.string(), ": cannot be opened: ", reason(error_number));
  }
  const std::optional<system::FileStatus> status = system::status_of(file.value());
  VIT_CHECK(status.has_value(), io, path_.string(), ": cannot be examined: ", reason(errno));
  VIT_CHECK(status->type != std::filesystem::file_type::directory, io, path_.string(),
            ": is a directory, expected a file");
  VIT_CHECK(status->type == std::filesystem::file_type::regular, io, path_.string(),
            ": is a pipe or device, expected a regular file");
  VIT_CHECK(status->bytes > 0, where, path_.string(), ": is empty (incomplete download?)");
  size_ = status->bytes;
  seconds_ = status->seconds;
  nanoseconds_ = status->nanoseconds;
  descriptor_ = file.release();
}

SourceFile::~SourceFile() {
  system::close_file(descriptor_);
}

void SourceFile::read(std::size_t begin, std::span<std::byte> out) const {
  const Where io = where_.with(ErrorKind::io);
  VIT_CHECK(begin <= size_ && out.size() <= size_ - begin, where_, path_.string(), ": has no bytes from ",
            begin, " to ", begin + out.size());
  for (std::size_t done = 0; done < out.size();) {
    const std::ptrdiff_t got = system::read_at(descriptor_, begin + done, out.subspan(done));
    VIT_CHECK(got >= 0, io, path_.string(), ": cannot be read: ", reason(errno));
    VIT_CHECK(got > 0, io, path_.string(), ": was truncated while it was read");
    done += static_cast<std::size_t>(got);
  }
  check_unchanged();
}

void SourceFile::check_unchanged() const {
  const Where io = where_.with(ErrorKind::io);
  const std::optional<system::FileStatus> now = system::status_of(descriptor_);
  VIT_CHECK(now.has_value(), io, path_.string(), ": cannot be examined: ", reason(errno));
  VIT_CHECK(now->bytes == size_ && now->seconds == seconds_ && now->nanoseconds == nanoseconds_, io,
            path_.string(), ": was written while it was read; replace files by renaming");
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
