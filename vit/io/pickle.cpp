// From the interpreted pickle and the records of the archive to tensor entries.
#include "vit/io/pickle.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/utf8.h"
#include "vit/io/in_quotes.h"
#include "vit/io/pickle_machine.h"
#include "vit/io/zip_archive.h"

namespace vit::internal {
namespace {

using pickle::Kind;
using pickle::Program;
using pickle::Value;

constexpr Where kWhere{"open_pickle", ErrorKind::format};
// Averaged weights before raw ones, and the first four in timm's order.
constexpr std::string_view kContainers[] = {
    "state_dict_ema", "model_ema", "state_dict", "model", "model_state_dict",
    "module",         "teacher",   "net",        "ema",   "student"};
constexpr std::size_t kMaxContainerDepth = 4;
constexpr std::string_view kProgramRecord = "data.pkl";
constexpr std::size_t kMaxFolderName = 1024;
// Tied weights lie in one storage under two names, seldom more: PyTorch saves no storage twice.
constexpr std::size_t kMaxSharing = 4;

/// The records of one PyTorch archive: all names begin with a folder of the writer's choice.
struct Archive {
  std::shared_ptr<const SourceFile> file;
  ZipRecords records;
  std::string folder;  // with its slash

  bool has(std::string_view name) const { return records.contains(folder + std::string(name)); }

  /// The bytes of a record, or nothing if there is none. Throws Error if it is compressed.
  std::optional<StoredBytes> find(std::string_view name) const {
    const auto at = records.find(folder + std::string(name));
    if (at == records.end()) return std::nullopt;
    VIT_CHECK(!at->second.compressed, kWhere.with(ErrorKind::unsupported), file->path().string(), ": record ",
              in_quotes(at->first),
              " is compressed; PyTorch stores its records plain (archive packed again by another program?)");
    return at->second.bytes;
  }
};

Archive open_archive(const std::filesystem::path& path) {
  Archive archive{.file = std::make_shared<const SourceFile>(path, kWhere), .records = {}, .folder = {}};
  const std::string name = path.string();
  if (!looks_like_zip(*archive.file)) {
    VIT_CHECK(archive.file->text(0, 1) != "\x80", kWhere.with(ErrorKind::unsupported), name,
              ": a pickle without zip archive, the format before PyTorch 1.6; load it there and torch.save() "
              "it again");
    refuse_download_leftovers(*archive.file, name, kWhere);
    fail(kWhere, name, ": is no PyTorch checkpoint, a zip archive was expected");
  }
  archive.records = open_zip(*archive.file, kWhere);
  std::size_t num_programs = 0;
  for (const auto& [record, bytes] : archive.records) {
    const std::size_t slash = record.find('/');
    if (slash == record.npos || record.substr(slash + 1) != kProgramRecord) continue;
    archive.folder = record.substr(0, slash + 1);
    ++num_programs;
  }
  VIT_CHECK(num_programs == 1, kWhere, name, ": holds ", num_programs,
            " records */data.pkl, expected one (not a PyTorch checkpoint?)");
  VIT_CHECK(archive.folder.size() <= kMaxFolderName, kWhere.with(ErrorKind::unsupported), name,
            ": its records lie in ", in_quotes(archive.folder), ", a name of ", archive.folder.size(),
            " bytes, at most ", kMaxFolderName, " are accepted");
  VIT_CHECK(!archive.has("constants.pkl"), kWhere.with(ErrorKind::unsupported), name,
            ": a TorchScript program, expected a checkpoint; save its state_dict() instead");
  const auto byte_order = archive.find("byteorder");
  const std::string order =
      byte_order ? archive.file->text(byte_order->begin(), byte_order->size()) : "little";
  VIT_CHECK(order == "little", kWhere.with(ErrorKind::unsupported), name, ": byte order ", in_quotes(order),
            ", only little-endian files can be read");
  return archive;
}

/// The strides, or nothing if the elements lie row-major without gaps; dimensions of size 1 have no say.
std::vector<std::size_t> meaningful_strides(const pickle::TensorRecord& tensor) {
  std::size_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return tensor.strides;
    expected *= tensor.shape[i];  // cannot overflow: make_entry has checked the product
  }
  return {};
}

class EntryBuilder {
 public:
  EntryBuilder(const Archive& archive, const Program& program)
      : archive_(archive), program_(program), name_(archive.file->path().string()) {}

  TensorEntry make_entry(std::string_view tensor_name, const Value& value) {
    const pickle::TensorRecord& tensor = program_.tensors[value.index];
    const pickle::Storage& storage = program_.storages[tensor.storage];
    const std::string label = "tensor " + in_quotes(tensor_name);
    VIT_CHECK(is_utf8(tensor_name), kWhere, name_, ": the name of ", label, " is not valid UTF-8");
    const auto bytes = storage_bytes(storage, label);

    TensorEntry entry{.name = std::string(tensor_name),
                      .dtype = storage.type->dtype,
                      .dtype_name = std::string(storage.type->name),
                      .shape = tensor.shape,
                      .strides = {},
                      .bytes = {},
                      .file = archive_.file};
    // A stride of 0 repeats elements, so the shape alone does not bound what a reader must allocate; the file
    // does.
    std::size_t num_bytes = storage.type->element_bytes;
    for (const std::size_t size : entry.shape) {
      VIT_CHECK(!product_overflows(num_bytes, size), kWhere, name_, ": ", label,
                " has a shape of more numbers than any file holds");
      num_bytes *= size;
    }
    const std::size_t file_bytes = archive_.file->size();
    VIT_CHECK(num_bytes <= file_bytes, kWhere, name_, ": ", label, " of ", num_bytes,
              " bytes is larger than the file");
    // Many names for one storage multiply it just so.
    num_bytes_ += num_bytes;  // cannot overflow: at most kMaxSharing times the file so far, and the file
    VIT_CHECK(num_bytes_ / kMaxSharing <= file_bytes, kWhere, name_, ": up to ", label, " the tensors have ",
              num_bytes_, " bytes, more than ", kMaxSharing, " times the file of ", file_bytes,
              " (storages shared by many tensors?)");
    if (num_bytes == 0) return entry;
    const auto check_inside = [&](bool condition) {
      VIT_CHECK(condition, kWhere, name_, ": ", label, " reaches beyond the ", storage.num_elements,
                " elements of its storage");
    };
    std::size_t last = tensor.offset;
    check_inside(last < storage.num_elements);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const std::size_t steps = tensor.shape[i] - 1;
      check_inside(steps == 0 || tensor.strides[i] <= (storage.num_elements - 1 - last) / steps);
      last += steps * tensor.strides[i];
    }
    entry.strides = meaningful_strides(tensor);
    entry.bytes = bytes.part(tensor.offset * storage.type->element_bytes,
                             (last - tensor.offset + 1) * storage.type->element_bytes);
    return entry;
  }

 private:
  StoredBytes storage_bytes(const pickle::Storage& storage, const std::string& label) const {
    const auto bytes = archive_.find("data/" + std::string(storage.key));
    VIT_CHECK(bytes.has_value(), kWhere, name_, ": ", label, " lies in storage ", in_quotes(storage.key),
              ", which the archive lacks");
    const std::size_t element_bytes = storage.type->element_bytes;
    VIT_CHECK(bytes->size() % element_bytes == 0 && bytes->size() / element_bytes == storage.num_elements,
              kWhere, name_, ": ", label, " lies in a storage of ", bytes->size(), " bytes, ",
              storage.num_elements, " elements of ", element_bytes, " were announced");
    return *bytes;
  }

  const Archive& archive_;
  const Program& program_;
  std::string name_;
  std::size_t num_bytes_ = 0;  // of all entries so far
};

const Value* find_member(const pickle::Dict& dict, std::string_view key) {
  const auto at = std::find_if(dict.begin(), dict.end(), [&](const auto& member) {
    return member.first.kind == Kind::string && member.first.string == key;
  });
  return at == dict.end() ? nullptr : &at->second;
}

/// Keys are copied out of the pickle, where one string can be the key of many members. Keys that differ are
/// together no longer than the pickle.
void check_keys(const pickle::Dict& dict, std::size_t num_pickle_bytes, const std::string& name) {
  std::size_t num_key_bytes = 0;
  for (const auto& [key, value] : dict) {
    num_key_bytes += key.string.size();  // at most kMaxObjects keys of at most kMaxPickleBytes
    VIT_CHECK(num_key_bytes <= num_pickle_bytes, kWhere, name, ": the keys of a dictionary up to ",
              in_quotes(key.string), " are longer than the pickle of ", num_pickle_bytes,
              " bytes (one key many times?)");
  }
}

/// A key as a list of ignored members shows it.
std::string key_text(const Value& key) {
  if (key.kind == Kind::string) return std::string(key.string);
  if (key.kind == Kind::integer) return std::to_string(key.integer);
  return pickle::to_string(key.kind);
}

/// The first members of a dictionary, for messages.
std::string members_text(const pickle::Dict& dict) {
  constexpr std::size_t kShown = 5;
  if (dict.empty()) return "but nothing at all";
  std::string text = "but ";
  for (std::size_t i = 0; i < std::min(kShown, dict.size()); ++i) {
    text += (i ? ", " : "") + in_quotes(key_text(dict[i].first));
  }
  return text + (dict.size() > kShown ? ", ..." : "");
}

/// Descends from the top to the state dictionary; says where it found it and lists what it passes by.
const pickle::Dict& find_state(const Program& program, std::size_t num_pickle_bytes,
                               TensorFile::Contents& contents) {
  const std::string name = contents.path.string();
  VIT_CHECK(program.result.kind == Kind::dict, kWhere, name, ": holds ",
            pickle::to_string(program.result.kind),
            ", expected a dictionary of tensors (save model.state_dict())");
  const pickle::Dict* dict = &program.dicts[program.result.index];
  check_keys(*dict, num_pickle_bytes, name);
  for (std::size_t depth = 0; depth < kMaxContainerDepth; ++depth) {
    const Value* next = nullptr;
    std::string_view next_key;
    for (const std::string_view container : kContainers) {
      const Value* const member = find_member(*dict, container);
      if (member == nullptr || member->kind != Kind::dict) continue;
      next = member;
      next_key = container;
      break;
    }
    if (next == nullptr) break;
    const std::string front = contents.container + (contents.container.empty() ? "" : ".");
    for (const auto& [key, value] : *dict) {
      if (&value != next) contents.ignored.push_back(front + key_text(key));
    }
    contents.container = front + std::string(next_key);
    dict = &program.dicts[next->index];
    check_keys(*dict, num_pickle_bytes, name);
  }
  return *dict;
}

}  // namespace

TensorFile open_pickle(const std::filesystem::path& path) {
  const Archive archive = open_archive(path);
  const std::string name = path.string();
  const StoredBytes stored = *archive.find(kProgramRecord);
  pickle::check_size(stored.size(), name);
  const std::vector<std::byte> bytes = stored.copy();  // what the program's strings point into
  const Program program = pickle::run(bytes, name);

  TensorFile::Contents contents{.path = path, .entries = {}, .metadata = {}, .container = {}, .ignored = {}};
  const pickle::Dict& state = find_state(program, bytes.size(), contents);
  EntryBuilder builder(archive, program);
  for (const auto& [key, value] : state) {
    if (key.kind == Kind::string && value.kind == Kind::tensor) {
      contents.entries.push_back(builder.make_entry(key.string, value));
    } else {
      contents.ignored.push_back(key_text(key));
    }
  }
  VIT_CHECK(!contents.entries.empty(), kWhere, name,
            ": holds no tensors where a state dictionary was expected, ", members_text(state));
  std::stable_sort(
      contents.entries.begin(), contents.entries.end(),
      [](const TensorEntry& a, const TensorEntry& b) { return a.bytes.begin() < b.bytes.begin(); });
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
