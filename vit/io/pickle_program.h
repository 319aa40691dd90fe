// An interpreter for the part of the pickle language that tensors in dictionaries need. It builds plain data,
// calls nothing and knows no class: a global outside its short list is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/dtype.h"

namespace vit::internal::pickle {

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,
  number,  // a float, or an integer beyond 64 bits: never needed, so not kept
  string,
  tuple,
  list,    // contents never needed, so not kept
  dict,    // dict, OrderedDict, Counter
  object,  // argparse.Namespace; attributes not kept
  global,
  storage,
  tensor,
};

/// What a message calls it: "a tuple".
const char* to_string(Kind kind);

/// A torch.*Storage class of the format, or of complex numbers, which are carried only.
struct StorageType {
  std::string_view name;
  Dtype dtype;
  std::size_t element_bytes;
};

/// Everything of the list that may be named.
enum class Global : std::uint8_t {
  ordered_dict,       // collections.OrderedDict
  counter,            // collections.Counter
  namespace_,         // argparse.Namespace
  size,               // torch.Size
  rebuild_tensor,     // torch._utils._rebuild_tensor_v2
  rebuild_parameter,  // torch._utils._rebuild_parameter
  storage_type,       // torch.*Storage; Value::storage_type says which
};

/// Small and copied freely; strings point into the pickle, containers into the tables of Program.
struct Value {
  Kind kind = Kind::none;
  Global global = Global::ordered_dict;       // kind global
  const StorageType* storage_type = nullptr;  // kind global, storage_type
  std::int64_t integer = 0;                   // integer and boolean
  std::string_view string{};                  // string
  std::size_t index = 0;                      // tuple: first item; dict, storage, tensor: place in the table
  std::size_t count = 0;                      // tuple: items
};

/// A record of raw numbers, by the name that the pickle gives it; nothing of it has been compared with the
/// archive.
struct Storage {
  const StorageType* type = nullptr;
  std::string_view key;
  std::size_t num_elements = 0;
};

/// A view of a storage, in elements; sizes are not negative, nothing else is known of them.
struct TensorRecord {
  std::size_t storage = 0;
  std::size_t offset = 0;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> strides;
};

using Dict = std::vector<std::pair<Value, Value>>;

/// The object that a pickle describes, with the tables its values refer to.
struct Program {
  Value result;
  std::vector<Value> items;
  std::vector<Dict> dicts;
  std::vector<Storage> storages;
  std::vector<TensorRecord> tensors;
};

constexpr std::size_t kMaxObjects = 1'000'000;
constexpr std::size_t kMaxStorageKey = 256;  // PyTorch counts: "0", "1", ...

constexpr Where kOpen{"open_pickle", ErrorKind::format};

/// Fills the tables of a Program; every object that does not fit is an Error with the place set by
/// set_position().
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string_view name) : name_(name) {}

  void set_position(std::size_t byte) { position_ = byte; }

  /// Throws Error (format), naming the file and the position, if the condition does not hold.
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    check(kOpen, condition, parts...);
  }
  /// As check(), for pickles that are well-formed but not understood: Error (unsupported).
  template <typename... Parts>
  void support(bool condition, const Parts&... parts) const {
    check(kOpen.with(ErrorKind::unsupported), condition, parts...);
  }
  /// Counts objects that are kept for good, at most kMaxObjects.
  void charge(std::size_t count);

  Value find_global(std::string_view module, std::string_view name) const;
  Value make_dict();
  Value make_tuple(std::span<const Value> items);
  /// Key and value in turn.
  void set_items(const Value& dict, std::span<const Value> pairs);
  /// From a persistent id: ("storage", type, key, device, number of elements).
  Value make_storage(const Value& id);
  /// What the call of a known global returns.
  Value call(const Value& function, const Value& arguments);

  Program finish(const Value& result);

 private:
  std::span<const Value> items(const Value& tuple) const;
  std::size_t to_size(const Value& value) const;
  std::vector<std::size_t> to_sizes(const Value& tuple) const;
  Value make_tensor(std::span<const Value> arguments);

  template <typename... Parts>
  void check(const Where& where, bool condition, const Parts&... parts) const {
    VIT_CHECK(condition, where, name_, ": at byte ", position_, " of the pickle: ", parts...);
  }

  std::string name_;
  std::size_t position_ = 0;
  std::size_t num_objects_ = 0;
  Program program_;
};

}  // namespace vit::internal::pickle
