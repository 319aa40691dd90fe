// The globals that may be named, and the tables that calls fill.
#include "vit/io/pickle_program.h"

#include <string>
#include <utility>

#include "vit/io/in_quotes.h"
#include "vit/io/tensor_file.h"

namespace vit::internal::pickle {
namespace {

constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", Dtype::f32, 4},
    {"HalfStorage", Dtype::f16, 2},
    {"BFloat16Storage", Dtype::bf16, 2},
    {"DoubleStorage", Dtype::f64, 8},
    {"LongStorage", Dtype::i64, 8},
    {"IntStorage", Dtype::i32, 4},
    {"ShortStorage", Dtype::i16, 2},
    {"CharStorage", Dtype::i8, 1},
    {"ByteStorage", Dtype::u8, 1},
    {"BoolStorage", Dtype::boolean, 1},
    {"ComplexFloatStorage", Dtype::other, 8},
    {"ComplexDoubleStorage", Dtype::other, 16},
};

struct KnownGlobal {
  std::string_view module;
  std::string_view name;
  Global global;
};

constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", Global::ordered_dict},
    {"collections", "Counter", Global::counter},
    {"argparse", "Namespace", Global::namespace_},
    {"torch", "Size", Global::size},
    {"torch._utils", "_rebuild_tensor_v2", Global::rebuild_tensor},
    {"torch._utils", "_rebuild_parameter", Global::rebuild_parameter},
};

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::none: return "None";
    case Kind::boolean: return "a bool";
    case Kind::integer: return "an integer";
    case Kind::number: return "a number";
    case Kind::string: return "a string";
    case Kind::tuple: return "a tuple";
    case Kind::list: return "a list";
    case Kind::dict: return "a dictionary";
    case Kind::object: return "a Namespace";
    case Kind::global: return "a class or function";
    case Kind::storage: return "a storage";
    case Kind::tensor: return "a tensor";
  }
  return "unknown";
}

void ProgramBuilder::charge(std::size_t count) {
  num_objects_ += count;
  support(num_objects_ <= kMaxObjects, "more than ", kMaxObjects, " objects");
}

Value ProgramBuilder::find_global(std::string_view module, std::string_view name) const {
  for (const KnownGlobal& known : kGlobals) {
    if (known.module == module && known.name == name) return {.kind = Kind::global, .global = known.global};
  }
  for (const StorageType& type : kStorageTypes) {
    if (module == "torch" && type.name == name) {
      return {.kind = Kind::global, .global = Global::storage_type, .storage_type = &type};
    }
  }
  support(
      false, "it names ", in_quotes(std::string(module) + "." + std::string(name)),
      ", which tensors do not need, and is refused (save the state_dict alone, or convert to safetensors)");
  return {};
}

Value ProgramBuilder::make_dict() {
  charge(1);
  program_.dicts.emplace_back();
  return {.kind = Kind::dict, .index = program_.dicts.size() - 1};
}

Value ProgramBuilder::make_tuple(std::span<const Value> items) {
  charge(items.size());
  const Value tuple{.kind = Kind::tuple, .index = program_.items.size(), .count = items.size()};
  program_.items.insert(program_.items.end(), items.begin(), items.end());
  return tuple;
}

void ProgramBuilder::set_items(const Value& dict, std::span<const Value> pairs) {
  check(dict.kind == Kind::dict, "items are set on ", to_string(dict.kind));
  check(pairs.size() % 2 == 0, "a dictionary has a key without value");
  charge(pairs.size() / 2);
  Dict& members = program_.dicts[dict.index];
  for (std::size_t i = 0; i < pairs.size(); i += 2) members.emplace_back(pairs[i], pairs[i + 1]);
}

Value ProgramBuilder::make_storage(const Value& id) {
  const auto parts = items(id);
  check(parts.size() == 5 && parts[0].string == "storage" && parts[1].kind == Kind::global &&
            parts[1].global == Global::storage_type && parts[2].kind == Kind::string &&
            parts[3].kind == Kind::string,
        "it refers to something outside that is no tensor storage");
  support(parts[2].string.size() <= kMaxStorageKey, "a storage has a name of ", parts[2].string.size(),
          " bytes, at most ", kMaxStorageKey, " are accepted");
  charge(1);
  program_.storages.push_back({parts[1].storage_type, parts[2].string, to_size(parts[4])});
  return {.kind = Kind::storage, .index = program_.storages.size() - 1};
}

Value ProgramBuilder::call(const Value& function, const Value& argument_tuple) {
  const auto arguments = items(argument_tuple);
  const auto expect_one = [&](std::size_t count, Kind first, std::string_view made) {
    check(arguments.size() == count && arguments[0].kind == first, made, " is made from something else than ",
          to_string(first));
    return arguments[0];
  };
  switch (function.global) {
    case Global::ordered_dict:
      check(arguments.empty(), "an OrderedDict is made from arguments");
      return make_dict();
    case Global::counter: return expect_one(1, Kind::dict, "a Counter");
    case Global::size: return expect_one(1, Kind::tuple, "a torch.Size");
    case Global::rebuild_tensor: return make_tensor(arguments);
    case Global::rebuild_parameter:
      return expect_one(3, Kind::tensor, "a parameter");  // requires_grad, hooks
    case Global::namespace_:
    case Global::storage_type: break;
  }
  support(false, "it calls a class that checkpoints do not call");
  return {};
}

Program ProgramBuilder::finish(const Value& result) {
  program_.result = result;
  return std::move(program_);
}

std::span<const Value> ProgramBuilder::items(const Value& tuple) const {
  check(tuple.kind == Kind::tuple, "expected a tuple, found ", to_string(tuple.kind));
  return std::span(program_.items).subspan(tuple.index, tuple.count);
}

std::size_t ProgramBuilder::to_size(const Value& value) const {
  check(value.kind == Kind::integer, "expected a size, found ", to_string(value.kind));
  check(value.integer >= 0, "expected a size, found ", value.integer);
  return static_cast<std::size_t>(value.integer);
}

std::vector<std::size_t> ProgramBuilder::to_sizes(const Value& tuple) const {
  const auto values = items(tuple);
  support(values.size() <= TensorEntry::kMaxRank, "a tensor has ", values.size(), " dimensions, at most ",
          TensorEntry::kMaxRank, " can be read");
  std::vector<std::size_t> sizes;
  for (const Value& value : values) sizes.push_back(to_size(value));
  return sizes;
}

Value ProgramBuilder::make_tensor(std::span<const Value> arguments) {
  // (storage, offset, shape, strides, requires_grad, hooks [, metadata])
  check((arguments.size() == 6 || arguments.size() == 7) && arguments[0].kind == Kind::storage,
        "a tensor is made from something else than a storage, offset, shape and strides");
  // Metadata marks a tensor as negated or conjugated, which its numbers do not show.
  const bool plain = arguments.size() == 6 || arguments[6].kind == Kind::none ||
                     (arguments[6].kind == Kind::dict && program_.dicts[arguments[6].index].empty());
  support(plain, "a tensor carries a pending negation or conjugation (save tensor.resolve_neg())");
  TensorRecord tensor{arguments[0].index, to_size(arguments[1]), to_sizes(arguments[2]),
                      to_sizes(arguments[3])};
  check(tensor.shape.size() == tensor.strides.size(), "a tensor of ", tensor.shape.size(), " dimensions has ",
        tensor.strides.size(), " strides");
  charge(1);
  program_.tensors.push_back(std::move(tensor));
  return {.kind = Kind::tensor, .index = program_.tensors.size() - 1};
}

}  // namespace vit::internal::pickle
