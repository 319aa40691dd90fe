#include "vit/io/pickle_archive.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/io/in_quotes.h"
#include "vit/io/pickle_program.h"
#include "vit/io/zip_archive.h"

namespace vit::internal::pickle {
namespace {

constexpr std::string_view kProgramRecord = "data.pkl";
constexpr std::size_t kMaxFolderName = 1024;

// ---------------------------------------------------------------------------------------------- zip archives

/// The folder, with its slash, of all records of the archive.
std::string find_folder(const ZipRecords& records, const std::string& name) {
  std::string folder;
  std::size_t num_programs = 0;
  for (const auto& [record, bytes] : records) {
    const std::size_t slash = record.find('/');
    if (slash == record.npos || record.substr(slash + 1) != kProgramRecord) continue;
    folder = record.substr(0, slash + 1);
    ++num_programs;
  }
  const bool exported = std::ranges::any_of(records, [](const auto& record) {
    return record.first.find("serialized_exported_program") != record.first.npos ||
           record.first.find("models/model.json") != record.first.npos;
  });
  VIT_CHECK(!exported, kOpen.with(ErrorKind::unsupported), name,
            ": a program of torch.export, expected a checkpoint; save the model's state_dict() instead");
  VIT_CHECK(num_programs == 1, kOpen, name, ": holds ", num_programs,
            " records */data.pkl, expected one (not a PyTorch checkpoint?)");
  VIT_CHECK(folder.size() <= kMaxFolderName, kOpen.with(ErrorKind::unsupported), name,
            ": its records are in ", in_quotes(folder), ", a name of ", folder.size(), " bytes, at most ",
            kMaxFolderName, " are accepted");
  return folder;
}

void check_byte_order(const std::string& order, const std::string& name) {
  VIT_CHECK(order == "little", kOpen.with(ErrorKind::unsupported), name, ": byte order ", in_quotes(order),
            ", only little-endian files can be read");
}

void check_plain(const ZipRecord& record, std::string_view record_name, const std::string& name) {
  VIT_CHECK(!record.compressed, kOpen.with(ErrorKind::unsupported), name, ": record ", in_quotes(record_name),
            " is compressed; PyTorch stores its records uncompressed (archive repacked by another program?)");
}

/// TorchScript stores the tensors of a module like every other archive; its code is ignored.
void read_zip(Archive& archive) {
  const std::string name = archive.file->path().string();
  const ZipRecords records = open_zip(*archive.file, kOpen);
  const std::string folder = find_folder(records, name);
  if (const auto order = records.find(folder + "byteorder"); order != records.end()) {
    check_plain(order->second, order->first, name);
    check_byte_order(archive.file->text(order->second.bytes.begin(), order->second.bytes.size()), name);
  }
  const auto program = records.find(folder + std::string(kProgramRecord));
  check_plain(program->second, program->first, name);
  check_size(program->second.bytes.size(), name);
  archive.bytes = program->second.bytes.copy();
  archive.program = run(archive.bytes, name);
  const std::string data = folder + "data/";
  for (const Storage& storage : archive.program.storages) {
    const auto record = records.find(data + std::string(storage.key));
    if (record == records.end()) continue;
    check_plain(record->second, record->first, name);
    archive.storages.emplace(storage.key, record->second.bytes);
  }
}

// ------------------------------------------------------------------------------------ the form before 1.6

// | magic number | version of the protocol | facts of the machine | the object | keys of storages |, each a
// pickle; then for each key | number of elements, 8 bytes | elements |
constexpr std::string_view kMagic{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15};
constexpr std::size_t kFirstWindow = std::size_t{1} << 20;

bool is_little_endian(const Program& facts) {
  if (facts.result.kind != Kind::dict) return true;
  for (const auto& [key, value] : facts.dicts[facts.result.index]) {
    if (key.string == "little_endian") return value.integer != 0;
  }
  return true;
}

/// The pickles after the magic number in the first `window` bytes of the file, and where they end.
struct Stream {
  std::vector<std::byte> bytes;
  Program program, keys;
  std::size_t end = 0;
};

Stream read_stream(const SourceFile& file, std::size_t window) {
  Stream out;
  out.bytes.resize(window);
  file.read(0, out.bytes);
  const std::string name = file.path().string();
  std::size_t at = kMagic.size();
  run_part(out.bytes, at, name);  // 1001
  check_byte_order(is_little_endian(run_part(out.bytes, at, name)) ? "little" : "big", name);
  out.program = run_part(out.bytes, at, name);
  out.keys = run_part(out.bytes, at, name, {.keeps_lists = true});
  out.end = at;
  return out;
}

/// The pickles are short compared to the numbers: a part of the file is read, and more if that is not enough.
Stream read_stream(const SourceFile& file) {
  const std::size_t most = std::min(file.size(), kMaxPickleBytes);
  for (std::size_t window = std::min(kFirstWindow, most);; window = std::min(8 * window, most)) {
    try {
      return read_stream(file, window);
    } catch (const Error&) {
      if (window == most) throw;
    }
  }
}

void read_legacy(Archive& archive) {
  const SourceFile& file = *archive.file;
  const std::string name = file.path().string();
  Stream stream = read_stream(file);
  std::map<std::string_view, const StorageType*> types;
  for (const Storage& storage : stream.program.storages) types.emplace(storage.key, storage.type);
  VIT_CHECK(stream.keys.result.kind == Kind::list, kOpen, name, ": holds ",
            to_string(stream.keys.result.kind), ", expected the keys of its storages");
  std::size_t at = stream.end;
  for (const Value& key : stream.keys.lists[stream.keys.result.index]) {
    VIT_CHECK(key.kind == Kind::string, kOpen, name, ": ", to_string(key.kind), " as the key of a storage");
    const auto type = types.find(key.string);
    VIT_CHECK(type != types.end(), kOpen, name, ": storage ", in_quotes(key.string),
              " belongs to no tensor of the file");
    std::uint64_t count = 0;
    VIT_CHECK(file.size() - at >= sizeof count, kOpen, name, ": is truncated before storage ",
              in_quotes(key.string));
    file.read(at, std::as_writable_bytes(std::span(&count, 1)));
    at += sizeof count;
    const std::size_t element_bytes = type->second->element_bytes;
    VIT_CHECK(!product_overflows(count, element_bytes) && count * element_bytes <= file.size() - at, kOpen,
              name, ": storage ", in_quotes(key.string), " of ", count,
              " elements runs past the end of the file (incomplete download?)");
    archive.storages.emplace(key.string, StoredBytes(file, at, count * element_bytes));
    at += count * element_bytes;
  }
  // the program's strings point into the bytes, whose address is kept by a move
  archive.bytes = std::move(stream.bytes);
  archive.program = std::move(stream.program);
}

[[noreturn]] void refuse_form(const SourceFile& file) {
  const std::string name = file.path().string();
  VIT_CHECK(file.text(0, 1) != "\x80", kOpen.with(ErrorKind::unsupported), name,
            ": a pickle, but not one of torch.save(), which starts with a magic number of PyTorch; load it "
            "where it was written and torch.save() the state_dict()");
  constexpr std::size_t kTarMagic = 257;
  VIT_CHECK(
      file.size() < kTarMagic + 5 || file.text(kTarMagic, 5) != "ustar", kOpen.with(ErrorKind::unsupported),
      name,
      ": a tar archive, the format of PyTorch 0.1 or a packed folder; unpack it, or load it with PyTorch and "
      "torch.save() it again");
  refuse_download_leftovers(file, name, kOpen);
  fail(kOpen, name, ": is not a PyTorch checkpoint; expected a zip archive");
}

}  // namespace

StoredBytes Archive::find(const Storage& storage, const std::string& label) const {
  const std::string name = file->path().string();
  const auto at = storages.find(storage.key);
  VIT_CHECK(at != storages.end(), kOpen, name, ": ", label, " is in storage ", in_quotes(storage.key),
            ", which is missing from the archive");
  const std::size_t element_bytes = storage.type->element_bytes, size = at->second.size();
  VIT_CHECK(size % element_bytes == 0, kOpen, name, ": ", label, " is in a storage of ", size,
            " bytes, elements of ", element_bytes, " were expected");
  const std::size_t count = size / element_bytes;
  const bool is_view = storage.first != 0 || (storage.num_elements < count && !is_zip);
  VIT_CHECK(is_view ? storage.first <= count && storage.num_elements <= count - storage.first
                    : count == storage.num_elements,
            kOpen, name, ": ", label, " is in a storage of ", size, " bytes, ", storage.num_elements,
            " elements of ", element_bytes, " were expected");
  return at->second.part(storage.first * element_bytes, storage.num_elements * element_bytes);
}

Archive open_archive(const std::filesystem::path& path) {
  Archive archive{.file = std::make_shared<const SourceFile>(path, kOpen),
                  .bytes = {},
                  .program = {},
                  .storages = {},
                  .is_zip = true};
  const SourceFile& file = *archive.file;
  archive.is_zip = looks_like_zip(file);
  if (archive.is_zip) {
    read_zip(archive);
  } else if (file.size() >= kMagic.size() && file.text(0, kMagic.size()) == kMagic) {
    read_legacy(archive);
  } else {
    refuse_form(file);
  }
  return archive;
}

}  // namespace vit::internal::pickle
