// Zip layout: | local header, name, extra, data |... | central directory | zip64 end, locator | end of
// directory |
#include "vit/io/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034B50;
constexpr std::uint32_t kCentralSignature = 0x02014B50;
constexpr std::uint32_t kEndSignature = 0x06054B50;
constexpr std::uint32_t kEnd64Signature = 0x06064B50;
constexpr std::uint32_t kLocator64Signature = 0x07064B50;
constexpr std::size_t kLocalBytes = 30;
constexpr std::size_t kCentralBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::size_t kMaxCommentBytes = 0xFFFF;
constexpr std::uint16_t kZip64Field = 0x0001;
constexpr std::uint16_t kEncrypted = 0x0001;  // flag bit 0
constexpr std::uint16_t kSizesFollowData =
    0x0008;  // flag bit 3: the local header may leave the sizes at zero
constexpr std::uint32_t kSeeZip64 = 0xFFFFFFFF;
constexpr std::uint16_t kSeeZip64Short = 0xFFFF;

/// A record as the central directory describes it.
struct Record {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::size_t stored_bytes = 0;
  std::size_t plain_bytes = 0;
  std::size_t local_offset = 0;
  std::size_t data_begin = 0;  // from the local header
};

struct Directory {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t num_records = 0;
};

class ZipReader {
 public:
  ZipReader(const SourceFile& file, const Where& where)
      : file_(file), name_(file.path().string()), where_(where.with(ErrorKind::format)) {}

  std::vector<Record> read_records() {
    directory_ = find_directory();
    check(directory_.num_records <= (directory_.end - directory_.begin) / kCentralBytes,
          "the directory specifies ", directory_.num_records, " records, more than fit into it");
    std::vector<Record> records;
    records.reserve(directory_.num_records);
    std::size_t at = directory_.begin;
    for (std::size_t i = 0; i < directory_.num_records; ++i) records.push_back(read_central(at));
    check(at == directory_.end, "the directory is longer than its records");
    for (Record& record : records) check_local(record);
    check_overlap(records);
    return records;
  }

 private:
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    VIT_CHECK(condition, where_, name_, ": damaged zip archive: ", parts...);
  }

  /// A little-endian number; the bytes must lie inside the file.
  template <typename T>
  T read(std::size_t at) const {
    check(at <= file_.size() && sizeof(T) <= file_.size() - at, "a header runs past the end of the file");
    T value;
    std::memcpy(&value, window(at, sizeof value), sizeof value);
    return value;
  }

  std::string read_text(std::size_t at, std::size_t size) const {
    check(at <= file_.size() && size <= file_.size() - at, "a name runs past the end of the file");
    return file_.text(at, size);
  }

  /// The bytes [at, at + size) of the file: in the part read last, or in a new one.
  const char* window(std::size_t at, std::size_t size) const {
    constexpr std::size_t kBytes = 1024, kBefore = 64;  // headers are read forwards, the end record backwards
    if (at < window_begin_ || at + size > window_begin_ + window_.size()) {
      window_begin_ = at < kBefore ? 0 : at - kBefore;
      window_ = file_.text(window_begin_, kBytes);
    }
    return window_.data() + (at - window_begin_);
  }

  /// The end-of-directory record is at the end of the file, except for a comment whose length it states.
  std::size_t find_end() const {
    const std::size_t num_bytes = file_.size();
    for (std::size_t comment = 0; comment <= kMaxCommentBytes && kEndBytes + comment <= num_bytes;
         ++comment) {
      const std::size_t at = num_bytes - kEndBytes - comment;
      if (read<std::uint32_t>(at) == kEndSignature && read<std::uint16_t>(at + 20) == comment) return at;
    }
    fail(where_, name_, ": a zip archive without directory (incomplete download?)");
  }

  Directory find_directory() const {
    const std::size_t end = find_end();
    VIT_CHECK(read<std::uint16_t>(end + 4) == 0 && read<std::uint16_t>(end + 6) == 0,
              where_.with(ErrorKind::unsupported), name_, ": a zip archive of several volumes");
    const auto num_records = read<std::uint16_t>(end + 10);
    const auto num_bytes = read<std::uint32_t>(end + 12);
    const auto offset = read<std::uint32_t>(end + 16);
    Directory out{offset, end, num_records};
    std::size_t stated_bytes = num_bytes;
    if (end >= kLocator64Bytes && read<std::uint32_t>(end - kLocator64Bytes) == kLocator64Signature) {
      const std::size_t end64 = read<std::uint64_t>(end - kLocator64Bytes + 8);
      check(end64 <= end - kLocator64Bytes && end - kLocator64Bytes - end64 >= kEnd64Bytes &&
                read<std::uint32_t>(end64) == kEnd64Signature,
            "its zip64 locator points to no zip64 record");
      out = {read<std::uint64_t>(end64 + 48), end64, read<std::uint64_t>(end64 + 32)};
      stated_bytes = read<std::uint64_t>(end64 + 40);
      check((num_records == kSeeZip64Short || num_records == out.num_records) &&
                (num_bytes == kSeeZip64 || num_bytes == stated_bytes) &&
                (offset == kSeeZip64 || offset == out.begin),
            "its two end records disagree");
    }
    check(out.begin <= out.end && out.end - out.begin == stated_bytes,
          "its directory is not where the end record says (bytes before the archive?)");
    return out;
  }

  /// Replaces the numbers that are all ones by those of the zip64 field, which lists them in this order.
  void read_zip64(Record& record, std::size_t at, std::size_t end) const {
    const std::size_t missing = (record.plain_bytes == kSeeZip64 ? 1u : 0u) +
                                (record.stored_bytes == kSeeZip64 ? 1u : 0u) +
                                (record.local_offset == kSeeZip64 ? 1u : 0u);
    if (missing == 0) return;
    while (end - at >= 4) {
      const auto id = read<std::uint16_t>(at);
      const std::size_t num_bytes = read<std::uint16_t>(at + 2);
      at += 4;
      check(num_bytes <= end - at, "an extra field of record ", in_quotes(record.name), " is truncated");
      if (id == kZip64Field) {
        check(num_bytes >= 8 * missing, "the zip64 field of record ", in_quotes(record.name),
              " is too short");
        for (std::size_t* value : {&record.plain_bytes, &record.stored_bytes, &record.local_offset}) {
          if (*value != kSeeZip64) continue;
          *value = read<std::uint64_t>(at);
          at += 8;
        }
        return;
      }
      at += num_bytes;
    }
    check(false, "record ", in_quotes(record.name), " lacks its zip64 field");
  }

  /// Reads the entry at `at` and moves `at` past it.
  Record read_central(std::size_t& at) const {
    check(directory_.end - at >= kCentralBytes && read<std::uint32_t>(at) == kCentralSignature,
          "an entry of its directory is truncated or unmarked");
    const std::size_t name_bytes = read<std::uint16_t>(at + 28);
    const std::size_t extra_bytes = read<std::uint16_t>(at + 30);
    const std::size_t comment_bytes = read<std::uint16_t>(at + 32);
    check(name_bytes + extra_bytes + comment_bytes <= directory_.end - at - kCentralBytes,
          "an entry of its directory is truncated");
    Record record{.name = read_text(at + kCentralBytes, name_bytes),
                  .flags = read<std::uint16_t>(at + 8),
                  .method = read<std::uint16_t>(at + 10),
                  .stored_bytes = read<std::uint32_t>(at + 20),
                  .plain_bytes = read<std::uint32_t>(at + 24),
                  .local_offset = read<std::uint32_t>(at + 42)};
    const std::size_t extra = at + kCentralBytes + name_bytes;
    read_zip64(record, extra, extra + extra_bytes);
    at = extra + extra_bytes + comment_bytes;
    return record;
  }

  /// The local header must agree; only it contains the position of the data.
  void check_local(Record& record) const {
    const std::string label = "record " + in_quotes(record.name);
    VIT_CHECK((record.flags & kEncrypted) == 0, where_.with(ErrorKind::unsupported), name_, ": ", label,
              " is encrypted");
    check(record.method != 0 || record.stored_bytes == record.plain_bytes, label,
          " is stored uncompressed, but has two different sizes");
    const std::size_t at = record.local_offset;
    check(at < directory_.begin && directory_.begin - at >= kLocalBytes &&
              read<std::uint32_t>(at) == kLocalSignature,
          label, " has no local header at the position in the directory");
    const std::size_t name_bytes = read<std::uint16_t>(at + 26);
    const std::size_t extra_bytes = read<std::uint16_t>(at + 28);
    check(read_text(at + kLocalBytes, name_bytes) == record.name, label,
          " has another name in its local header");
    check(read<std::uint16_t>(at + 6) == record.flags && read<std::uint16_t>(at + 8) == record.method, label,
          " has other flags or another method in its local header");
    const auto agrees = [&](std::size_t field, std::size_t central_bytes) {
      const auto local_bytes = read<std::uint32_t>(at + field);
      const bool left_out = local_bytes == 0 && (record.flags & kSizesFollowData) != 0;
      return left_out || local_bytes == kSeeZip64 || local_bytes == central_bytes;
    };
    check(agrees(18, record.stored_bytes) && agrees(22, record.plain_bytes), label,
          " has another size in its local header");
    record.data_begin = at + kLocalBytes + name_bytes + extra_bytes;
    check(
        record.data_begin <= directory_.begin && record.stored_bytes <= directory_.begin - record.data_begin,
        label, " of ", record.stored_bytes, " bytes runs past the end of the data");
  }

  void check_overlap(std::vector<Record>& records) const {
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.local_offset < b.local_offset; });
    for (std::size_t i = 1; i < records.size(); ++i) {
      const Record& before = records[i - 1];
      check(before.data_begin + before.stored_bytes <= records[i].local_offset, "records ",
            in_quotes(before.name), " and ", in_quotes(records[i].name), " overlap");
    }
  }

  const SourceFile& file_;
  mutable std::string window_;
  mutable std::size_t window_begin_ = 0;
  std::string name_;
  Where where_;
  Directory directory_;
};

}  // namespace

bool looks_like_zip(const SourceFile& file) {
  std::uint32_t signature = 0;
  if (file.size() < sizeof signature) return false;
  file.read(0, std::as_writable_bytes(std::span(&signature, 1)));
  return signature == kLocalSignature || signature == kEndSignature;
}

ZipRecords open_zip(const SourceFile& file, const Where& where) {
  ZipRecords out;
  for (const Record& record : ZipReader(file, where).read_records()) {
    const ZipRecord found{StoredBytes(file, record.data_begin, record.stored_bytes), record.method != 0};
    const bool is_new = out.emplace(record.name, found).second;
    VIT_CHECK(is_new, where.with(ErrorKind::format), file.path().string(), ": damaged zip archive: record ",
              in_quotes(record.name), " occurs twice");
  }
  return out;
}

}  // namespace vit::internal
