// A record: "\x93NUMPY", version, length of the header, header (a Python dictionary as text), data.
#include "vit/io/npz.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/utf8.h"
#include "vit/io/in_quotes.h"
#include "vit/io/zip_archive.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"open_npz", ErrorKind::format};
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kMaxArrayHeaderBytes = std::size_t{1} << 16;

struct NumpyType {
  std::string_view name;  // after the byte order
  Dtype dtype;
  std::size_t bytes;
};
constexpr NumpyType kNumpyTypes[] = {
    {"f4", Dtype::f32, 4},     {"f2", Dtype::f16, 2},   {"f8", Dtype::f64, 8},   {"i8", Dtype::i64, 8},
    {"i4", Dtype::i32, 4},     {"i2", Dtype::i16, 2},   {"i1", Dtype::i8, 1},    {"u1", Dtype::u8, 1},
    {"b1", Dtype::boolean, 1}, {"u2", Dtype::other, 2}, {"u4", Dtype::other, 4}, {"u8", Dtype::other, 8},
    {"V2", Dtype::bf16, 2}};

/// Reads one record; `name` is that of the file and of the record, for messages.
class RecordReader {
 public:
  RecordReader(StoredBytes bytes, std::string name, ComplexNumbers complex_numbers)
      : bytes_(bytes), name_(std::move(name)), complex_numbers_(complex_numbers) {}

  /// Nothing for an array of Python objects.
  std::optional<TensorEntry> read() {
    read_header();
    const std::string descr = text_of("descr");
    if (descr.starts_with("|O")) return std::nullopt;
    check(descr.size() >= 3, "a type ", in_quotes(descr));
    std::string_view number = std::string_view(descr).substr(1);
    const bool is_complex =
        complex_numbers_ == ComplexNumbers::as_pairs && (number == "c8" || number == "c16");
    if (is_complex) number = number == "c8" ? "f4" : "f8";
    const auto type = std::ranges::find(kNumpyTypes, number, &NumpyType::name);
    VIT_CHECK(type != std::end(kNumpyTypes) && (descr[0] == '<' || descr[0] == '|'),
              kWhere.with(ErrorKind::unsupported), name_, ": numbers of type ", in_quotes(descr),
              "; little-endian floats, integers and booleans can be read");
    TensorEntry entry{.name = {},
                      .dtype = type->dtype,
                      .dtype_name = descr,
                      .shape = read_shape(),
                      .strides = {},
                      .bytes = {},
                      .file = {}};
    const std::size_t parts = is_complex ? 2 : 1;
    check(entry.shape.size() + parts <= TensorEntry::kMaxRank + 1, "too many dimensions");
    std::size_t num_bytes = parts * type->bytes;
    for (const std::size_t size : entry.shape) {
      check(!product_overflows(num_bytes, size), "a shape with more numbers than any file can contain");
      num_bytes *= size;
    }
    check(num_bytes == bytes_.size() - data_begin_, "holds ", bytes_.size() - data_begin_,
          " bytes of numbers, but its shape requires ", num_bytes);
    entry.bytes = bytes_.part(data_begin_, num_bytes);
    if (entry.shape.size() > 1 && value_of("fortran_order").starts_with("True")) {
      std::size_t step = parts;
      for (const std::size_t size : entry.shape) {  // columns first
        entry.strides.push_back(step);
        step *= size;
      }
      if (is_complex) entry.strides.push_back(1);
    }
    if (is_complex) entry.shape.push_back(2);
    return entry;
  }

 private:
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    VIT_CHECK(condition, kWhere, name_, ": ", parts...);
  }

  std::string text(std::size_t begin, std::size_t count) const {
    std::string out(count, '\0');
    bytes_.read(begin, std::as_writable_bytes(std::span(out)));
    return out;
  }

  void read_header() {
    constexpr std::size_t kFixed = 8;  // magic and version
    check(bytes_.size() >= kFixed + 2 && text(0, kMagic.size()) == kMagic, "is not a NumPy array");
    const std::string fixed = text(0, kFixed);
    const int version = fixed[6];
    check(version >= 1 && version <= 3, "version ", version, " of the format, expected 1 to 3");
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    check(bytes_.size() >= kFixed + length_bytes, "is cut off");
    std::size_t length = 0;
    const std::string digits = text(kFixed, length_bytes);
    for (std::size_t i = 0; i < length_bytes; ++i)
      length |= std::size_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    check(length <= kMaxArrayHeaderBytes && length <= bytes_.size() - kFixed - length_bytes, "a header of ",
          length, " bytes");
    header_ = text(kFixed + length_bytes, length);
    data_begin_ = kFixed + length_bytes + length;
  }

  /// The text after the key in the header.
  std::string_view value_of(std::string_view key) const {
    const std::string quoted = "'" + std::string(key) + "':";
    const std::size_t at = header_.find(quoted);
    check(at != header_.npos, "its header lacks ", in_quotes(key));
    std::string_view rest = std::string_view(header_).substr(at + quoted.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    return rest;
  }

  std::string text_of(std::string_view key) const {
    const std::string_view value = value_of(key);
    const std::size_t end = value.starts_with('\'') ? value.find('\'', 1) : value.npos;
    VIT_CHECK(end != value.npos, kWhere.with(ErrorKind::unsupported), name_,
              ": an array of records, not of numbers");
    return std::string(value.substr(1, end - 1));
  }

  std::vector<std::size_t> read_shape() const {
    std::string_view value = value_of("shape");
    const std::size_t end = value.find(')');
    check(value.starts_with('(') && end != value.npos, "its shape is not a tuple");
    value = value.substr(1, end - 1);
    std::vector<std::size_t> shape;
    while (!value.empty()) {
      std::size_t size = 0;
      const auto [next, error] = std::from_chars(value.data(), value.data() + value.size(), size);
      check(error == std::errc() && shape.size() < TensorEntry::kMaxRank, "its shape is ", in_quotes(value));
      shape.push_back(size);
      value.remove_prefix(static_cast<std::size_t>(next - value.data()));
      while (value.starts_with(',') || value.starts_with(' ') || value.starts_with('L'))
        value.remove_prefix(1);
    }
    return shape;
  }

  StoredBytes bytes_;
  std::string name_, header_;
  ComplexNumbers complex_numbers_;
  std::size_t data_begin_ = 0;
};

}  // namespace

TensorFile open_npz(const std::filesystem::path& path, ComplexNumbers complex_numbers) {
  const auto file = std::make_shared<const SourceFile>(path, kWhere);
  if (!looks_like_zip(*file)) {
    refuse_download_leftovers(*file, path.string(), kWhere);
    fail(kWhere, path.string(), ": is not a .npz file; expected a zip archive");
  }
  TensorFile::Contents contents;
  contents.path = path;
  for (const auto& [record, stored] : open_zip(*file, kWhere)) {
    const std::string label = path.string() + ": record " + in_quotes(record);
    VIT_CHECK(record.ends_with(kEnding) && is_utf8(record), kWhere, label, ": is not a NumPy array");
    VIT_CHECK(!stored.compressed, kWhere.with(ErrorKind::unsupported), label,
              ": is compressed; write the arrays again with numpy.savez instead of savez_compressed");
    std::string name = record.substr(0, record.size() - kEnding.size());
    std::optional<TensorEntry> entry = RecordReader(stored.bytes, label, complex_numbers).read();
    if (!entry) {
      contents.members.push_back(std::move(name));
      continue;
    }
    entry->name = std::move(name);
    entry->file = file;
    contents.entries.push_back(*std::move(entry));
  }
  VIT_CHECK(!contents.entries.empty(), kWhere, path.string(), ": contains no arrays of numbers");
  std::ranges::stable_sort(contents.entries, {},
                           [](const TensorEntry& entry) { return entry.bytes.begin(); });
  return TensorFile(std::move(contents));
}

TensorFile open_npy(const std::filesystem::path& path, ComplexNumbers complex_numbers) {
  const auto file = std::make_shared<const SourceFile>(path, kWhere);
  refuse_download_leftovers(*file, path.string(), kWhere);
  std::optional<TensorEntry> entry =
      RecordReader(StoredBytes(*file, 0, file->size()), path.string(), complex_numbers).read();
  VIT_CHECK(entry.has_value(), kWhere, path.string(), ": contains Python objects, not numbers");
  entry->name = "array";
  entry->file = file;
  TensorFile::Contents contents;
  contents.path = path;
  contents.entries.push_back(*std::move(entry));
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
