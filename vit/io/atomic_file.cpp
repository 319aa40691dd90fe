#include "vit/io/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/system.h"

namespace vit::internal {

AtomicFile::AtomicFile(std::filesystem::path path, const Where& where)
    : path_(std::move(path)), where_(where.operation()) {
  static std::atomic<unsigned> serial{0};  // several threads may write files of one name
  temporary_ = path_;
  temporary_ += ".part-" + std::to_string(system::process_id()) + "-" + std::to_string(serial.fetch_add(1));
  descriptor_ = system::create_nameless_file(path_);
  if (descriptor_ >= 0) return;
  descriptor_ = system::create_file(temporary_);
  if (descriptor_ < 0) refuse("created");
  has_name_ = true;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  system::close_file(descriptor_);
  if (has_name_) system::remove_file(temporary_);
}

void AtomicFile::refuse(std::string_view action) const {
  fail(Where(where_, ErrorKind::io), path_.string(), ": cannot be ", action, ": ",
       std::generic_category().message(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::ptrdiff_t written = system::write_some(descriptor_, bytes);
    if (written < 0) refuse("written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (!system::store_file(descriptor_)) refuse("written");
  if (!has_name_) {
    if (!system::name_file(descriptor_, temporary_)) refuse("renamed into place");
    has_name_ = true;
  }
  if (!system::rename_file(temporary_, path_)) refuse("renamed into place");
  system::close_file(std::exchange(descriptor_, -1));
}

}  // namespace vit::internal
