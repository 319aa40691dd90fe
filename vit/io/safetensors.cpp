// Checks of the safetensors header, and the writer. Nothing is allocated beyond what the header's
// own size justifies; tensor data is only referenced.
#include "vit/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/io/atomic_file.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"

static_assert(std::endian::native == std::endian::little, "the formats are little-endian and read in place");

namespace vit::internal {
namespace {

constexpr Where kOpen{"open_safetensors", ErrorKind::format};
constexpr Where kWrite{"write_safetensors", ErrorKind::argument};
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // limit of the reference reader
constexpr std::size_t kPrefixBytes = 8;
constexpr char kMetadataKey[] = "__metadata__";

struct StoredType {
  std::string_view name;
  std::size_t bits;
  Dtype dtype;
};

/// All types of the format. Those that the library cannot convert are carried as Dtype::other.
constexpr StoredType kTypes[] = {
    {"F32", 32, Dtype::f32},          {"F16", 16, Dtype::f16},      {"BF16", 16, Dtype::bf16},
    {"F64", 64, Dtype::f64},          {"I8", 8, Dtype::i8},         {"U8", 8, Dtype::u8},
    {"I16", 16, Dtype::i16},          {"U16", 16, Dtype::u16},      {"I32", 32, Dtype::i32},
    {"U32", 32, Dtype::u32},          {"I64", 64, Dtype::i64},      {"U64", 64, Dtype::u64},
    {"BOOL", 8, Dtype::boolean},      {"C64", 64, Dtype::other},    {"F8_E4M3", 8, Dtype::other},
    {"F8_E5M2", 8, Dtype::other},     {"F8_E8M0", 8, Dtype::other}, {"F8_E4M3FNUZ", 8, Dtype::other},
    {"F8_E5M2FNUZ", 8, Dtype::other}, {"F6_E2M3", 6, Dtype::other}, {"F6_E3M2", 6, Dtype::other},
    {"F4", 4, Dtype::other},
};

/// One tensor of the header: the position of its data, relative to the end of the header.
struct Located {
  TensorEntry entry;
  std::size_t begin = 0;
  std::size_t end = 0;
};

Located read_entry(const Json& value, const std::string& file_name) {
  const auto check_as = [&](ErrorKind kind, bool condition, const auto&... parts) {
    VIT_CHECK(condition, kOpen.with(kind), file_name, ": tensor ", in_quotes(value.key()), parts...);
  };
  const auto check = [&](bool condition, const auto&... parts) {
    check_as(ErrorKind::format, condition, parts...);
  };
  check(value.is_object(), " is not described by an object");
  check(value.size() == 3, " is described by ", value.size(),
        " keys, expected dtype, shape and data_offsets");
  Located out;
  out.entry.name = value.key();

  const std::string_view type_name = value.at("dtype").as_string();
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [&](const StoredType& known) { return known.name == type_name; });
  check_as(ErrorKind::unsupported, type != std::end(kTypes), " has the unknown type ", in_quotes(type_name));
  out.entry.dtype = type->dtype;
  out.entry.dtype_name = type->name;

  const Json shape = value.at("shape");
  check(shape.is_array(), " has no shape");
  check_as(ErrorKind::unsupported, shape.size() <= TensorEntry::kMaxRank, " has ", shape.size(),
           " dimensions, at most ", TensorEntry::kMaxRank, " can be read");
  std::size_t num_bits = type->bits;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t size = shape[i].as_size();
    check(!product_overflows(size, num_bits), " has a shape with more numbers than any file can contain");
    out.entry.shape.push_back(size);
    num_bits *= size;
  }

  const Json offsets = value.at("data_offsets");
  check(offsets.is_array() && offsets.size() == 2, " needs two data_offsets");
  out.begin = offsets[0].as_size();
  out.end = offsets[1].as_size();
  check(out.begin <= out.end, " has data_offsets that run backwards: ", out.begin, ", ", out.end);
  check(num_bits % 8 == 0 && num_bits / 8 == out.end - out.begin, " occupies ", out.end - out.begin,
        " bytes, but its type and shape need ", num_bits / 8);
  return out;
}

std::map<std::string, std::string> read_metadata(const Json& value) {
  value.expect(Json::Kind::object);
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < value.size(); ++i) out.emplace(value[i].key(), value[i].as_string());
  return out;
}

/// Offsets, in order, must cover the data exactly.
void check_coverage(const std::vector<Located>& tensors, std::size_t num_data_bytes,
                    const std::string& file_name) {
  std::size_t covered = 0;
  for (const Located& tensor : tensors) {
    VIT_CHECK(tensor.begin == covered, kOpen, file_name, ": tensor ", in_quotes(tensor.entry.name),
              " starts at byte ", tensor.begin, " of the data, expected ", covered,
              " (a hole or an overlap)");
    covered = tensor.end;
    VIT_CHECK(covered <= num_data_bytes, kOpen, file_name, ": tensor ", in_quotes(tensor.entry.name),
              " ends at byte ", covered, " of the data, but only ", num_data_bytes,
              " exist (incomplete download?)");
  }
  VIT_CHECK(covered == num_data_bytes, kOpen, file_name, ": ", num_data_bytes - covered,
            " bytes follow the last tensor");
}

std::string read_header(const StoredBytes& file, const std::string& name) {
  VIT_CHECK(file.size() >= kPrefixBytes, kOpen, name, ": ", file.size(),
            " bytes are too few for a safetensors file (incomplete download?)");
  std::uint64_t num_header_bytes = 0;
  file.read(0, std::as_writable_bytes(std::span(&num_header_bytes, 1)));
  VIT_CHECK(num_header_bytes <= kMaxHeaderBytes, kOpen, name, ": header of ", num_header_bytes,
            " bytes, at most ", kMaxHeaderBytes, " are allowed (not a safetensors file?)");
  VIT_CHECK(num_header_bytes <= file.size() - kPrefixBytes, kOpen, name, ": header of ", num_header_bytes,
            " bytes, but only ", file.size() - kPrefixBytes, " follow (incomplete download?)");
  std::string header(num_header_bytes, '\0');
  file.read(kPrefixBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

/// The tensors of a whole file, which `source` keeps open; null in memory.
TensorFile read_file(const StoredBytes& file, const std::filesystem::path& path,
                     const std::shared_ptr<const SourceFile>& source) {
  const std::string name = path.string();
  const std::string header = read_header(file, name);
  const Json root = parse_json(header, name + " (header)", {.max_bytes = kMaxHeaderBytes});
  root.expect(Json::Kind::object);

  TensorFile::Contents contents{.path = path};
  std::vector<Located> tensors;
  tensors.reserve(root.size());
  for (std::size_t i = 0; i < root.size(); ++i) {
    const Json value = root[i];
    if (value.key() == kMetadataKey) {
      contents.metadata = read_metadata(value);
    } else {
      tensors.push_back(read_entry(value, name));
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const Located& a, const Located& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const std::size_t data = kPrefixBytes + header.size();
  check_coverage(tensors, file.size() - data, name);

  contents.entries.reserve(tensors.size());
  for (Located& tensor : tensors) {
    tensor.entry.bytes = file.part(data + tensor.begin, tensor.end - tensor.begin);
    tensor.entry.file = source;
    contents.entries.push_back(std::move(tensor.entry));
  }
  return TensorFile(std::move(contents));
}

}  // namespace

TensorFile open_safetensors(const std::filesystem::path& path) {
  const auto file = std::make_shared<const SourceFile>(path, kOpen);
  refuse_download_leftovers(*file, path.string(), kOpen);
  return read_file(StoredBytes(*file, 0, file->size()), path, file);
}

TensorFile open_safetensors(std::span<const std::byte> file, const std::filesystem::path& name) {
  return read_file(StoredBytes(file), name, nullptr);
}

namespace {

std::string_view stored_name(const TensorToWrite& tensor) {
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const StoredType& known) {
    return known.dtype == tensor.dtype && known.dtype != Dtype::other;
  });
  VIT_CHECK(type != std::end(kTypes), kWrite, "tensor ", in_quotes(tensor.name),
            " has a type that cannot be written");
  return type->name;
}

std::size_t bytes_needed(const TensorToWrite& tensor) {
  VIT_CHECK(tensor.shape.size() <= TensorEntry::kMaxRank, kWrite, "tensor ", in_quotes(tensor.name), " has ",
            tensor.shape.size(), " dimensions, at most ", TensorEntry::kMaxRank, " can be written");
  std::size_t num_bytes = dtype_bytes(tensor.dtype);
  for (const std::size_t size : tensor.shape) num_bytes = checked_mul(num_bytes, size, kWrite);
  return num_bytes;
}

/// Orders by alignment, largest first, then name, so that a reader may map the data and use it in place.
std::vector<const TensorToWrite*> writing_order(std::span<const TensorToWrite> tensors) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    const std::size_t a_bytes = dtype_bytes(a->dtype);
    const std::size_t b_bytes = dtype_bytes(b->dtype);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a->name < b->name;
  });
  return order;
}

std::string build_header(std::span<const TensorToWrite* const> order,
                         const std::map<std::string, std::string>& metadata) {
  std::string header;
  JsonWriter json(header, JsonLayout::compact, JsonText::ascii);
  json.begin_object();
  if (!metadata.empty()) {
    json.key(kMetadataKey).begin_object();
    for (const auto& [key, value] : metadata) json.member(key, value);
    json.end_object();
  }
  std::size_t offset = 0;
  for (const TensorToWrite* tensor : order) {
    const std::size_t end = offset + bytes_needed(*tensor);
    json.key(tensor->name).begin_object();
    json.member("dtype", stored_name(*tensor)).array("shape", tensor->shape);
    json.array("data_offsets", std::array{offset, end}).end_object();
    offset = end;
  }
  json.end_object();
  header.resize(round_up(header.size(), 8), ' ');
  VIT_CHECK(header.size() <= kMaxHeaderBytes, kWrite, "header of ", header.size(), " bytes, at most ",
            kMaxHeaderBytes, " are allowed");
  return header;
}

/// The header, preceded by its length in eight bytes.
std::string with_length(const std::string& header) {
  const std::uint64_t num_bytes = header.size();
  std::string out(sizeof num_bytes, '\0');
  std::memcpy(out.data(), &num_bytes, sizeof num_bytes);
  return out + header;
}

/// The tensors in the order of the file. Throws Error, beginning with `name`, for those that cannot be
/// written.
std::vector<const TensorToWrite*> checked_order(std::span<const TensorToWrite> tensors,
                                                const std::string& name) {
  std::set<std::string_view> names{kMetadataKey};
  for (const TensorToWrite& tensor : tensors) {
    VIT_CHECK(names.insert(tensor.name).second, kWrite, name, ": tensor name ", in_quotes(tensor.name),
              " occurs twice or is reserved");
  }
  for (const TensorToWrite& tensor : tensors) {
    VIT_CHECK(bytes_needed(tensor) == tensor.bytes.size(), kWrite, "tensor ", in_quotes(tensor.name), " has ",
              tensor.bytes.size(), " bytes, but its type and shape need ", bytes_needed(tensor));
  }
  return writing_order(tensors);
}

}  // namespace

std::string safetensors_start(const std::string& name, Dtype dtype, const std::vector<std::size_t>& shape,
                              const std::map<std::string, std::string>& metadata) {
  const TensorToWrite tensor{.name = name, .dtype = dtype, .shape = shape, .bytes = {}};
  return with_length(build_header(std::array<const TensorToWrite*, 1>{&tensor}, metadata));
}

std::string safetensors_bytes(std::span<const TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorToWrite*> order = checked_order(tensors, "in memory");
  std::string out = with_length(build_header(order, metadata));
  for (const TensorToWrite* tensor : order)
    out.append(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  return out;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorToWrite*> order = checked_order(tensors, path.string());
  const std::string start = with_length(build_header(order, metadata));
  AtomicFile file(path, kWrite);
  file.write(std::as_bytes(std::span(start)));
  for (const TensorToWrite* tensor : order) file.write(tensor->bytes);
  file.commit();
}

}  // namespace vit::internal
