// Builds checkpoint files byte by byte, so that a test can break any field it likes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace vit::test {

/// The bytes of a little-endian number.
template <typename T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

/// Length, header, data.
inline std::string safetensors(std::string_view header, std::string_view data) {
  return raw<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

/// One record of a zip archive; the fields say what the two headers claim.
struct ZipRecordToWrite {
  std::string name;
  std::string data;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint32_t central_bytes = 0xFFFFFFFE;  // 0xFFFFFFFE: the size of the data
  std::uint32_t local_bytes = 0xFFFFFFFE;
  std::string local_name{};  // empty: the name
  std::string central_extra{};
  std::uint32_t local_offset = 0xFFFFFFFE;  // 0xFFFFFFFE: where it is
};

struct ZipOptions {
  bool zip64 = false;
  std::uint16_t extra_records = 0;    // announced beyond those that are there
  std::uint32_t moved_directory = 0;  // added to the offset of the directory
  std::string comment{};
};

inline std::string zip(const std::vector<ZipRecordToWrite>& records, const ZipOptions& options = {}) {
  std::string out;
  std::string directory;
  const auto or_default = [](std::uint32_t claimed, std::size_t actual) {
    return claimed == 0xFFFFFFFE ? static_cast<std::uint32_t>(actual) : claimed;
  };
  for (const ZipRecordToWrite& record : records) {
    const std::uint32_t offset = or_default(record.local_offset, out.size());
    const std::uint32_t local_bytes = or_default(record.local_bytes, record.data.size());
    const std::uint32_t central_bytes = or_default(record.central_bytes, record.data.size());
    const std::string local_name = record.local_name.empty() ? record.name : record.local_name;
    out += "PK\x03\x04" + raw<std::uint16_t>(20) + raw(record.flags) + raw(record.method) +
           raw<std::uint32_t>(0) + raw<std::uint32_t>(0) + raw(local_bytes) + raw(local_bytes) +
           raw(static_cast<std::uint16_t>(local_name.size())) + raw<std::uint16_t>(0) + local_name +
           record.data;
    directory += "PK\x01\x02" + raw<std::uint16_t>(20) + raw<std::uint16_t>(20) + raw(record.flags) +
                 raw(record.method) + raw<std::uint32_t>(0) + raw<std::uint32_t>(0) + raw(central_bytes) +
                 raw(central_bytes) + raw(static_cast<std::uint16_t>(record.name.size())) +
                 raw(static_cast<std::uint16_t>(record.central_extra.size())) + raw<std::uint16_t>(0) +
                 raw<std::uint16_t>(0) + raw<std::uint16_t>(0) + raw<std::uint32_t>(0) + raw(offset) +
                 record.name + record.central_extra;
  }
  const std::uint64_t begin = out.size() + options.moved_directory;
  const std::uint64_t count = records.size() + options.extra_records;
  out += directory;
  if (options.zip64) {
    const std::uint64_t end = out.size();
    out += "PK\x06\x06" + raw<std::uint64_t>(44) + raw<std::uint16_t>(45) + raw<std::uint16_t>(45) +
           raw<std::uint32_t>(0) + raw<std::uint32_t>(0) + raw(count) + raw(count) +
           raw<std::uint64_t>(directory.size()) + raw(begin);
    out += "PK\x06\x07" + raw<std::uint32_t>(0) + raw(end) + raw<std::uint32_t>(1);
  }
  const auto short_count = options.zip64 ? std::uint16_t{0xFFFF} : static_cast<std::uint16_t>(count);
  const auto short_begin = options.zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(begin);
  const auto short_bytes = options.zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(directory.size());
  return out + "PK\x05\x06" + raw<std::uint32_t>(0) + raw(short_count) + raw(short_count) + raw(short_bytes) +
         raw(short_begin) + raw(static_cast<std::uint16_t>(options.comment.size())) + options.comment;
}

/// Opcodes of the pickle language.
namespace opcode {

inline std::string string(std::string_view text) {
  return "X" + raw(static_cast<std::uint32_t>(text.size())) + std::string(text);
}
inline std::string integer(std::int64_t value) {
  return "\x8a\x08" + raw(value);
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::string_view items) {
  return "(" + std::string(items) + "t";
}
inline std::string sizes(const std::vector<std::int64_t>& values) {
  std::string items;
  for (const std::int64_t value : values) items += integer(value);
  return tuple(items);
}
inline std::string dict(std::string_view items) {
  return "}(" + std::string(items) + "u";
}

struct Tensor {
  std::string key = "0";
  std::string storage_type = "FloatStorage";
  std::int64_t storage_elements = 6;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {3, 1};
  std::string metadata{};  // opcodes of the seventh argument
};

/// What torch.save writes for a tensor.
inline std::string tensor(const Tensor& t) {
  const std::string storage = tuple(string("storage") + global("torch", t.storage_type) + string(t.key) +
                                    string("cpu") + integer(t.storage_elements)) +
                              "Q";
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage + integer(t.offset) + sizes(t.shape) + sizes(t.strides) + "\x89" +
               global("collections", "OrderedDict") + ")R" + t.metadata) +
         "R";
}

}  // namespace opcode

/// An archive as torch.save writes it: the program is what comes between PROTO and STOP.
inline std::string torch_archive(std::string_view program, std::string_view storage,
                                 std::vector<ZipRecordToWrite> more = {}) {
  std::vector<ZipRecordToWrite> records = {
      {.name = "x/data.pkl", .data = "\x80\x02" + std::string(program) + "."},
      {.name = "x/data/0", .data = std::string(storage)}};
  records.insert(records.end(), more.begin(), more.end());
  return zip(records);
}

/// The raw bytes of some floats.
inline std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace vit::test
