// The contents of a pickle, as plain data: dictionaries, tensors, and objects reduced to the name of their
// class and their attributes. Nothing is imported, built or called.
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
  bytes,   // never needed, so not kept
  list,    // a list or set; of its items those that may hold tensors are kept, all if requested
  dict,    // dict, OrderedDict, Counter
  object,  // of any class: constructor arguments are dropped, attributes and items are kept
  global,
  storage,
  tensor,
};

/// The name in messages: "a tuple".
const char* to_string(Kind kind);

/// A torch.*Storage class of the format, or of complex numbers, which are carried only.
struct StorageType {
  std::string_view name;
  Dtype dtype;
  std::size_t element_bytes;
};

/// Classes and functions with a known meaning; all others only create objects.
enum class Global : std::uint8_t {
  other,
  ordered_dict,                 // collections.OrderedDict
  counter,                      // collections.Counter
  size,                         // torch.Size
  rebuild_old_tensor,           // torch._utils._rebuild_tensor
  rebuild_tensor,               // torch._utils._rebuild_tensor_v2
  rebuild_typed_tensor,         // torch._utils._rebuild_tensor_v3
  rebuild_parameter,            // torch._utils._rebuild_parameter
  rebuild_parameter_and_state,  // torch._utils._rebuild_parameter_with_state
  rebuild_subclass,             // torch._tensor._rebuild_from_type_v2
  dtype,                        // torch.float8_e4m3fn, ...; see Value::storage_type
  storage_type,                 // torch.*Storage; see Value::storage_type
};

/// Small and copied freely; strings point into the pickle, containers into the tables of Program.
struct Value {
  Kind kind = Kind::none;
  Global global = Global::other;              // kind global
  const StorageType* storage_type = nullptr;  // kind global, storage_type and dtype
  std::int64_t integer = 0;                   // integer and boolean
  std::string_view string{};                  // string
  /// tuple: first item; list: index of its items; global, dict, object, storage, tensor: index in the table
  std::size_t index = 0;
  std::size_t count = 0;  // tuple: items
};

/// A record of raw numbers, by its name in the pickle; not yet compared with the
/// archive.
struct Storage {
  const StorageType* type = nullptr;
  std::string_view key;
  std::size_t first = 0;  // first element of a view of the record (the format before PyTorch 1.6)
  std::size_t num_elements = 0;
};

/// A view of a storage, in elements; sizes are not negative, but otherwise unchecked.
struct TensorRecord {
  std::size_t storage = 0;
  std::size_t offset = 0;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> strides;
};

using Dict = std::vector<std::pair<Value, Value>>;

/// The module and name of a class or function.
struct GlobalName {
  std::string_view module, name;
};

/// The object that a pickle describes, with the tables its values refer to.
struct Program {
  Value result;
  std::vector<Value> items;
  std::vector<std::vector<Value>> lists;
  std::vector<Dict> dicts;
  std::vector<Dict> objects;  // attributes and items
  std::vector<GlobalName> globals;
  std::vector<Storage> storages;
  std::vector<TensorRecord> tensors;
};

constexpr std::size_t kMaxObjects = 1'000'000;
constexpr std::size_t kMaxStorageKey = 256;  // PyTorch counts: "0", "1", ...

constexpr Where kOpen{"open_pickle", ErrorKind::format};

/// Fills the tables of a Program; every invalid object is an Error with the position set by
/// set_position().
class ProgramBuilder {
 public:
  /// `keeps_lists`: all of their items are wanted, not only those that may hold tensors.
  ProgramBuilder(std::string_view name, bool keeps_lists) : name_(name), keeps_lists_(keeps_lists) {}

  void set_position(std::size_t byte) { position_ = byte; }

  /// Throws Error (format), naming the file and the position, if the condition does not hold.
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    check(kOpen, condition, parts...);
  }
  /// Like check(), for well-formed but unsupported pickles: Error (unsupported).
  template <typename... Parts>
  void support(bool condition, const Parts&... parts) const {
    check(kOpen.with(ErrorKind::unsupported), condition, parts...);
  }
  /// Counts objects that are kept, at most kMaxObjects.
  void charge(std::size_t count);

  /// Throws Error (unsupported) for names that run programs, which no checkpoint needs.
  Value find_global(std::string_view module, std::string_view name);
  Value make_list();
  Value make_dict();
  Value make_object();
  Value make_tuple(std::span<const Value> items);
  void append(const Value& list, std::span<const Value> items);
  /// Alternating keys and values, into a dictionary or an object.
  void set_items(const Value& target, std::span<const Value> pairs);
  /// The opcode BUILD: sets attributes of an object; those of a dictionary are dropped.
  void set_state(const Value& target, const Value& state);
  /// From a persistent id: ("storage", type, key, device, number of elements [, view]).
  Value make_storage(const Value& id);
  /// The result of calling a known global; for others and for objects, an object.
  Value call(const Value& function, const Value& arguments);

  Program finish(const Value& result);

 private:
  std::span<const Value> items(const Value& tuple) const;
  std::size_t to_size(const Value& value) const;
  std::vector<std::size_t> to_sizes(const Value& tuple) const;
  /// `metadata`: index of that argument, if there are as many.
  Value make_tensor(std::span<const Value> arguments, std::size_t metadata);
  Value make_typed_tensor(std::span<const Value> arguments);
  void set_view(const Value& view, Storage& storage);

  template <typename... Parts>
  void check(const Where& where, bool condition, const Parts&... parts) const {
    VIT_CHECK(condition, where, name_, ": at byte ", position_, " of the pickle: ", parts...);
  }

  std::string name_;
  bool keeps_lists_ = false;
  std::size_t position_ = 0;
  std::size_t num_objects_ = 0;
  Program program_;
};

/// The meaning of a name in a pickle; Global::other for an unknown one.
struct Known {
  Global global = Global::other;
  const StorageType* storage_type = nullptr;  // Global::storage_type and dtype
};
Known find_known(std::string_view module, std::string_view name);

/// Whether a pickle that references this is refused, although nothing would be called: the system,
/// interpreters, other pickles, the network, foreign code; or an invalid Python name.
bool is_refused(std::string_view module, std::string_view name);

/// Interprets a pickle of protocol 2 to 5 and calls nothing: a class or function is a name, and objects
/// created with it have no behavior. Memory is proportional to its size, and time too except for the
/// logarithmic cost of a search; nothing recurses, and at most kMaxObjects items are kept. `name` is used for
/// the file in messages. Throws Error naming the global, opcode or shape that does not belong in a
/// checkpoint, with its byte position.
Program run(std::span<const std::byte> bytes, std::string_view name);

/// Whether the value is, or may hold, a tensor.
bool may_hold_tensors(const Value& value);

struct RunOptions {
  bool keeps_lists = false;  // all items of lists are wanted
};
/// Like run(), for a pickle that starts at `at` and is followed by other data; moves `at` to its end.
Program run_part(std::span<const std::byte> bytes, std::size_t& at, std::string_view name,
                 RunOptions options = {});
/// Throws Error for more bytes than run() accepts, before they are read.
void check_size(std::size_t num_bytes, std::string_view name);

constexpr std::size_t kMaxPickleBytes = 64u << 20;

}  // namespace vit::internal::pickle
