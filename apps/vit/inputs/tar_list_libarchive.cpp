// The headers of a .tar file, as libarchive reads them: ustar, pax, GNU and older ones.
#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string_view>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/inputs/tar_archive.h"
#include "vit/base/check.h"
#include "vit/base/late_library.h"

namespace vit::app {
namespace {

/// The functions of libarchive, opened with the first .tar file.
struct Tar {
  VIT_LATE_FUNCTION(archive_entry_filetype);
  VIT_LATE_FUNCTION(archive_entry_hardlink);
  VIT_LATE_FUNCTION(archive_entry_pathname);
  VIT_LATE_FUNCTION(archive_entry_pathname_utf8);
  VIT_LATE_FUNCTION(archive_entry_size);
  VIT_LATE_FUNCTION(archive_entry_sparse_count);
  VIT_LATE_FUNCTION(archive_error_string);
  VIT_LATE_FUNCTION(archive_filter_bytes);
  VIT_LATE_FUNCTION(archive_read_free);
  VIT_LATE_FUNCTION(archive_read_new);
  VIT_LATE_FUNCTION(archive_read_next_header);
  VIT_LATE_FUNCTION(archive_read_open_fd);
  VIT_LATE_FUNCTION(archive_read_support_format_tar);
};

const Tar& tar() {
  static const Tar functions;
  return functions;
}

constexpr Where kWhere{"tar", ErrorKind::format};
constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

struct ArchiveCloser {
  void operator()(archive* reader) const noexcept { tar().archive_read_free(reader); }
};

/// A name for messages, on one line and of limited length.
std::string shown(const std::string& name) {
  constexpr std::size_t kMaxShown = 200;
  return printable(name.size() <= kMaxShown ? name : name.substr(0, kMaxShown) + "...");
}

std::string reason(archive* reader) {
  const char* const text = tar().archive_error_string(reader);
  return text == nullptr ? "unknown defect" : text;
}

/// Throws Error unless libarchive succeeded.
void check(int result, archive* reader, const std::string& place) {
  if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
    return;  // a warning: a name that this locale cannot spell
  const std::string cause = reason(reader);
  if (cause == "Unrecognized archive format")
    fail(kWhere, place, ": is not a .tar file; decompress a compressed one first");
  fail(kWhere, place, ": ", cause);
}

TarEntry entry_of(archive* reader, archive_entry* header) {
  const char* name = tar().archive_entry_pathname(header);
  if (name == nullptr) name = tar().archive_entry_pathname_utf8(header);
  TarEntry entry{.name = name == nullptr ? "" : name};
  const auto type = tar().archive_entry_filetype(header);
  if (type == AE_IFDIR) entry.kind = TarEntry::Kind::folder;
  if (type != AE_IFREG || tar().archive_entry_hardlink(header) != nullptr) return entry;
  entry.kind = tar().archive_entry_sparse_count(header) > 0 ? TarEntry::Kind::sparse : TarEntry::Kind::file;
  // The header is consumed, but nothing after it.
  entry.range = {.offset = static_cast<std::uint64_t>(tar().archive_filter_bytes(reader, 0)),
                 .size = static_cast<std::uint64_t>(tar().archive_entry_size(header))};
  return entry;
}

void open_library(const std::string& place) {
  try {
    tar();
  } catch (const Error& error) {
    fail(kWhere.with(ErrorKind::unsupported), place,
         ": .tar files cannot be read: ", std::string(error.message()));
  }
}

}  // namespace

void TarArchive::list(const std::function<void(const TarEntry&)>& visit) const {
  open_library(path_.string());
  const FileHandle file = open();
  const std::unique_ptr<archive, ArchiveCloser> reader(tar().archive_read_new());
  VIT_CHECK(reader != nullptr, kWhere.with(ErrorKind::io), "not enough memory");
  check(tar().archive_read_support_format_tar(reader.get()), reader.get(), path_.string());
  std::string place = path_.string();
  check(tar().archive_read_open_fd(reader.get(), ::fileno(file.get()), kBlockBytes), reader.get(), place);
  while (true) {
    archive_entry* header = nullptr;
    const int result = tar().archive_read_next_header(reader.get(), &header);
    if (result == ARCHIVE_EOF) return;
    check(result, reader.get(), place);
    const TarEntry entry = entry_of(reader.get(), header);
    VIT_CHECK(entry.kind != TarEntry::Kind::file ||
                  (entry.range.offset <= size_ && entry.range.size <= size_ - entry.range.offset),
              kWhere, path_.string(), ": is truncated inside the member ", shown(entry.name));
    visit(entry);
    place = path_.string() + ": damaged after the member " + shown(entry.name);
  }
}

}  // namespace vit::app
