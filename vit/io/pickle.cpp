// From the interpreted pickle and the storages of the archive to named tensor entries.
#include "vit/io/pickle.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/utf8.h"
#include "vit/io/in_quotes.h"
#include "vit/io/pickle_archive.h"

namespace vit::internal {
namespace {

using pickle::Archive;
using pickle::Kind;
using pickle::Program;
using pickle::Value;

constexpr Where kWhere{"open_pickle", ErrorKind::format};
// Tied weights share one storage under two names, rarely more: PyTorch saves no storage twice.
constexpr std::size_t kMaxSharing = 4;
// Names are written out although the pickle contains each of their parts once.
constexpr std::size_t kMaxNameSharing = 16, kFreeNameBytes = std::size_t{1} << 16;
constexpr std::size_t kMaxDepth = 32;  // of dictionaries, tuples and objects
constexpr std::size_t kMaxFacts = 4096, kMaxFactBytes = 1024, kMaxFactDepth = 4;

/// The strides, or nothing if the elements lie row-major without gaps; dimensions of size 1 are ignored.
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
  explicit EntryBuilder(const Archive& archive) : archive_(archive), name_(archive.file->path().string()) {}

  TensorEntry make_entry(std::string_view tensor_name, const Value& value) {
    const pickle::TensorRecord& tensor = archive_.program.tensors[value.index];
    const pickle::Storage& storage = archive_.program.storages[tensor.storage];
    const std::string label = "tensor " + in_quotes(tensor_name);
    VIT_CHECK(is_utf8(tensor_name), kWhere, name_, ": the name of ", label, " is not valid UTF-8");
    const StoredBytes bytes = archive_.find(storage, label);

    TensorEntry entry{.name = std::string(tensor_name),
                      .dtype = storage.type->dtype,
                      .dtype_name = std::string(storage.type->name),
                      .shape = tensor.shape,
                      .strides = {},
                      .bytes = {},
                      .file = archive_.file};
    // A stride of 0 repeats elements, so the shape does not bound what a reader must allocate; the file
    // does.
    std::size_t num_bytes = storage.type->element_bytes;
    for (const std::size_t size : entry.shape) {
      VIT_CHECK(!product_overflows(num_bytes, size), kWhere, name_, ": ", label,
                " has a shape with more numbers than any file can contain");
      num_bytes *= size;
    }
    const std::size_t file_bytes = archive_.file->size();
    VIT_CHECK(num_bytes <= file_bytes, kWhere, name_, ": ", label, " of ", num_bytes,
              " bytes is larger than the file");
    // Many names for one storage multiply it as well.
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
  const Archive& archive_;
  std::string name_;
  std::size_t num_bytes_ = 0;  // of all entries so far
};

/// A key as shown in names and lists.
std::string key_text(const Value& key) {
  if (key.kind == Kind::string) return std::string(key.string);
  if (key.kind == Kind::integer) return std::to_string(key.integer);
  return pickle::to_string(key.kind);
}

/// The attributes in which torch.nn.Module stores its tensors and parts; state_dict() omits them from names.
bool is_module_table(const Value& key) {
  return key.string == "_parameters" || key.string == "_buffers" || key.string == "_modules";
}

/// The wrapper that OmegaConf puts around every value.
bool is_config_shell(const Value& key) {
  return key.string == "_content" || key.string == "_val";
}

/// Traverses all contents of a pickle and collects tensors, other members, texts and numbers.
class Collector {
 public:
  Collector(const Archive& archive, TensorFile::Contents& contents)
      : program_(archive.program),
        contents_(contents),
        entries_(archive),
        name_(contents.path.string()),
        max_name_bytes_(kMaxNameSharing * archive.bytes.size() + kFreeNameBytes),
        seen_dicts_(program_.dicts.size(), false),
        seen_lists_(program_.lists.size(), false),
        seen_objects_(program_.objects.size(), false),
        tuples_(program_.items.size(), Tuple::unknown) {}

  void run() { visit(program_.result, "", 0); }

 private:
  /// What is known of a tuple: whether it may hold tensors, and that it was visited.
  enum class Tuple : std::uint8_t { unknown, plain, holding, seen };

  /// `path` ends with a dot or is empty.
  void visit(const Value& value, const std::string& path, std::size_t depth) {
    if (depth > kMaxDepth) return;
    if (value.kind == Kind::dict && !seen_dicts_[value.index]) {
      seen_dicts_[value.index] = true;
      for (const auto& [key, member] : program_.dicts[value.index]) visit_member(key, member, path, depth);
    }
    if (value.kind == Kind::object && !seen_objects_[value.index]) {
      seen_objects_[value.index] = true;
      for (const auto& [key, member] : program_.objects[value.index]) {
        const bool transparent = is_module_table(key) || is_config_shell(key);
        if (transparent && is_fact(member)) {
          add_fact(path.substr(0, path.empty() ? 0 : path.size() - 1), member);
        } else if (transparent) {
          visit(member, path, depth + 1);
        } else {
          visit_member(key, member, path, depth);
        }
      }
    }
    if (value.kind == Kind::list && !seen_lists_[value.index]) {
      seen_lists_[value.index] = true;
      visit_items(program_.lists[value.index], path, depth);
    }
    if (value.kind == Kind::tuple && may_hold_tensors(value) && tuples_[value.index] != Tuple::seen) {
      tuples_[value.index] = Tuple::seen;
      visit_items(items_of(value), path, depth);
    }
  }

  std::span<const Value> items_of(const Value& tuple) const {
    return std::span(program_.items).subspan(tuple.index, tuple.count);
  }

  /// Of a tuple: of any of its items, which are looked through once.
  bool may_hold_tensors(const Value& value) {
    if (value.kind != Kind::tuple) return pickle::may_hold_tensors(value);
    if (value.count == 0) return false;
    Tuple& state = tuples_[value.index];
    if (state == Tuple::unknown)
      state = std::ranges::any_of(items_of(value), pickle::may_hold_tensors) ? Tuple::holding : Tuple::plain;
    return state != Tuple::plain;
  }

  /// Items are members under their number; pairs of a text and a value, as dict.items() has them, under the
  /// text. Tuples of numbers and texts are passed over.
  void visit_items(std::span<const Value> items, const std::string& path, std::size_t depth) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool is_tuple = items[i].kind == Kind::tuple;
      const std::span<const Value> inside = is_tuple ? items_of(items[i]) : items.subspan(i, 1);
      if (!may_hold_tensors(items[i])) continue;
      if (is_tuple && inside.size() == 2 && inside[0].kind == Kind::string) {
        visit_member(inside[0], inside[1], path, depth);
      } else {
        visit_member({.kind = Kind::integer, .integer = static_cast<std::int64_t>(i)}, items[i], path, depth);
      }
    }
  }

  static bool is_fact(const Value& value) {
    return value.kind == Kind::string || value.kind == Kind::integer || value.kind == Kind::boolean;
  }

  void visit_member(const Value& key, const Value& member, const std::string& path, std::size_t depth) {
    const bool named = key.kind == Kind::string || key.kind == Kind::integer;
    num_name_bytes_ += path.size() + key.string.size();
    VIT_CHECK(num_name_bytes_ <= max_name_bytes_, kWhere, name_, ": the names up to ", in_quotes(key.string),
              " are many times longer than the pickle (one key used many times?)");
    std::string name = path + key_text(key);
    if (named && member.kind == Kind::tensor) {
      contents_.entries.push_back(entries_.make_entry(name, member));
      return;
    }
    if (is_fact(member)) add_fact(name, member);
    contents_.members.push_back(name);
    if (named && pickle::may_hold_tensors(member)) visit(member, name + ".", depth + 1);
  }

  void add_fact(const std::string& name, const Value& value) {
    const auto dots = static_cast<std::size_t>(std::ranges::count(name, '.'));
    const bool small = name.size() + value.string.size() <= kMaxFactBytes && dots < kMaxFactDepth;
    if (!small || contents_.facts.size() >= kMaxFacts) return;
    if (!is_utf8(name) || !is_utf8(value.string)) return;
    const std::string text = value.kind == Kind::string    ? std::string(value.string)
                             : value.kind == Kind::boolean ? (value.integer != 0 ? "true" : "false")
                                                           : std::to_string(value.integer);
    contents_.facts.emplace(name, text);
  }

  const Program& program_;
  TensorFile::Contents& contents_;
  EntryBuilder entries_;
  std::string name_;
  std::size_t num_name_bytes_ = 0, max_name_bytes_;
  std::vector<bool> seen_dicts_, seen_lists_, seen_objects_;
  std::vector<Tuple> tuples_;  // by their first items
};

/// The first members, for messages.
std::string members_text(const std::vector<std::string>& members) {
  std::vector<std::string> quoted;
  for (const std::string& member : members) {
    if (member.find('.') == member.npos) quoted.push_back(in_quotes(member));
  }
  return quoted.empty() ? "but it is empty" : "but " + listed(quoted, 5);
}

/// Whether a component of the name is no number of an item.
bool has_name(const TensorEntry& entry) {
  return entry.name.find_first_not_of("0123456789.") != std::string::npos;
}

/// Classes whose objects represent tensors and are built by code of their own.
struct TensorClass {
  std::string_view module, what;
};
constexpr TensorClass kTensorClasses[] = {
    {"torch.distributed.tensor",
     "DTensor, the shards of one process; save a full state dictionary (get_model_state_dict with "
     "full_state_dict=True)"},
    {"torch.distributed._tensor",
     "DTensor, the shards of one process; save a full state dictionary (get_model_state_dict with "
     "full_state_dict=True)"},
    {"torch.distributed._shard",
     "ShardedTensor, the shards of one process; save with StateDictType.FULL_STATE_DICT"},
    {"torchao", "quantized by torchao; save the model before it is quantized"},
    {"bitsandbytes", "quantized by bitsandbytes; save the model before it is quantized"},
};

[[noreturn]] void refuse_without_tensors(const Archive& archive, const TensorFile::Contents& contents) {
  for (const pickle::GlobalName& global : archive.program.globals) {
    for (const TensorClass& known : kTensorClasses) {
      VIT_CHECK(!global.module.starts_with(known.module), kWhere.with(ErrorKind::unsupported),
                contents.path.string(), ": its tensors are ", known.what);
    }
  }
  fail(kWhere, contents.path.string(), ": contains no tensors; expected a state dictionary, ",
       members_text(contents.members));
}

}  // namespace

bool has_pickle_ending(const std::filesystem::path& file) {
  const std::filesystem::path ending = file.extension();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt" ||
         file.filename().string().ends_with(".pth.tar");
}

TensorFile open_pickle(const std::filesystem::path& path) {
  const Archive archive = pickle::open_archive(path);
  const Value& result = archive.program.result;
  VIT_CHECK(result.kind != Kind::tensor && (pickle::may_hold_tensors(result) || result.kind == Kind::tuple),
            kWhere, path.string(), ": holds ", pickle::to_string(result.kind),
            ", expected a dictionary of tensors (save model.state_dict())");
  TensorFile::Contents contents;
  contents.path = path;
  Collector(archive, contents).run();
  if (contents.entries.empty()) refuse_without_tensors(archive, contents);
  VIT_CHECK(std::ranges::any_of(contents.entries, has_name), kWhere, path.string(), ": holds ",
            contents.entries.size(), " tensors without names, in ", pickle::to_string(result.kind),
            "; expected a dictionary of tensors (save model.state_dict())");
  std::stable_sort(
      contents.entries.begin(), contents.entries.end(),
      [](const TensorEntry& a, const TensorEntry& b) { return a.bytes.begin() < b.bytes.begin(); });
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
