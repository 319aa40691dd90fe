// Layout after PKWARE's APPNOTE 6.3: local header and data of every member, then the central directory. Times
// are 1980-01-01, so that equal contents give equal files.
#include "apps/vit/outputs/zip_writer.h"

#include <zlib.h>

#include "vit/base/error.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr unsigned kVersion = 20, kVersionZip64 = 45;  // "needed to extract", 2.0 and 4.5
constexpr unsigned kUtf8Names = 0x0800;
constexpr unsigned kDate1980 = 0x0021;
constexpr std::uint64_t kOverflow16 = 0xFFFF, kOverflow32 = 0xFFFFFFFF;

/// Little-endian fields, one after the other.
class Record {
 public:
  Record& u16(std::uint64_t value) { return put(value, 2); }
  Record& u32(std::uint64_t value) { return put(value, 4); }
  Record& u64(std::uint64_t value) { return put(value, 8); }
  Record& bytes(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  Record& put(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(std::as_bytes(std::span(bytes)));
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  Member member{.name = name, .offset = position_};
  uLong crc = ::crc32_z(0, nullptr, 0);
  for (const auto part : parts) {
    if (part.empty()) continue;
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
    member.bytes += part.size();
  }
  member.crc = static_cast<std::uint32_t>(crc);

  const bool is_large = member.bytes >= zip64_from_;
  Record header;
  header.bytes("PK\x03\x04")
      .u16(is_large ? kVersionZip64 : kVersion)
      .u16(kUtf8Names)
      .u16(0)
      .u16(0)
      .u16(kDate1980);
  header.u32(member.crc);
  header.u32(is_large ? kOverflow32 : member.bytes).u32(is_large ? kOverflow32 : member.bytes);
  header.u16(name.size()).u16(is_large ? 20 : 0).bytes(name);
  if (is_large) header.u16(0x0001).u16(16).u64(member.bytes).u64(member.bytes);
  write(header.str());
  for (const auto part : parts) write(as_text(part));
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  const std::uint64_t directory = position_;
  for (const Member& member : members_) {
    const bool large_size = member.bytes >= zip64_from_, large_offset = member.offset >= zip64_from_;
    Record extra;
    if (large_size) extra.u64(member.bytes).u64(member.bytes);
    if (large_offset) extra.u64(member.offset);
    const std::size_t extra_bytes = extra.str().empty() ? 0 : extra.str().size() + 4;
    const unsigned version = extra_bytes > 0 ? kVersionZip64 : kVersion;
    Record entry;
    entry.bytes("PK\x01\x02").u16(version).u16(version).u16(kUtf8Names).u16(0).u16(0).u16(kDate1980);
    entry.u32(member.crc);
    entry.u32(large_size ? kOverflow32 : member.bytes).u32(large_size ? kOverflow32 : member.bytes);
    entry.u16(member.name.size()).u16(extra_bytes).u16(0).u16(0).u16(0).u32(0);
    entry.u32(large_offset ? kOverflow32 : member.offset).bytes(member.name);
    if (extra_bytes > 0) entry.u16(0x0001).u16(extra.str().size()).bytes(extra.str());
    write(entry.str());
  }
  const std::uint64_t directory_bytes = position_ - directory, count = members_.size();
  const bool is_large = count >= kOverflow16 || directory >= zip64_from_ || directory_bytes >= zip64_from_;
  if (is_large) {
    const std::uint64_t end_record = position_;
    Record end;
    end.bytes("PK\x06\x06").u64(44).u16(kVersionZip64).u16(kVersionZip64).u32(0).u32(0);
    end.u64(count).u64(count).u64(directory_bytes).u64(directory);
    end.bytes("PK\x06\x07").u32(0).u64(end_record).u32(1);
    write(end.str());
  }
  Record end;
  end.bytes("PK\x05\x06").u16(0).u16(0);
  const std::uint64_t written_count = is_large ? kOverflow16 : count;
  end.u16(written_count).u16(written_count);
  end.u32(is_large ? kOverflow32 : directory_bytes).u32(is_large ? kOverflow32 : directory).u16(0);
  write(end.str());
}

}  // namespace vit::app
