// The tables that an interpreted pickle fills.
#include "vit/io/pickle_program.h"

#include <string>
#include <utility>

#include "vit/io/in_quotes.h"
#include "vit/io/tensor_file.h"

namespace vit::internal::pickle {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::none: return "None";
    case Kind::boolean: return "a bool";
    case Kind::integer: return "an integer";
    case Kind::number: return "a number";
    case Kind::string: return "a string";
    case Kind::tuple: return "a tuple";
    case Kind::bytes: return "bytes";
    case Kind::list: return "a list";
    case Kind::dict: return "a dictionary";
    case Kind::object: return "an object";
    case Kind::global: return "a class or function";
    case Kind::storage: return "a storage";
    case Kind::tensor: return "a tensor";
  }
  return "unknown";
}

bool may_hold_tensors(const Value& value) {
  return value.kind == Kind::tensor || value.kind == Kind::dict || value.kind == Kind::object ||
         value.kind == Kind::list || (value.kind == Kind::tuple && value.count != 0);
}

void ProgramBuilder::charge(std::size_t count) {
  num_objects_ += count;
  support(num_objects_ <= kMaxObjects, "more than ", kMaxObjects, " objects");
}

Value ProgramBuilder::find_global(std::string_view module, std::string_view name) {
  const bool is_quantized = module == "torch" && name.starts_with("Q") && name.ends_with("Storage");
  support(!is_quantized, "it names ", in_quotes(std::string(module) + "." + std::string(name)),
          ", the numbers of a quantized model, which are not read; save the model before it is quantized "
          "(--dtype reduces precision here)");
  support(!is_refused(module, name), "it names ", in_quotes(std::string(module) + "." + std::string(name)),
          ", which no checkpoint needs and which is dangerous when pickles are executed; the file is refused "
          "(save only the state_dict, or convert to safetensors)");
  const Known known = find_known(module, name);
  Value global{.kind = Kind::global, .global = known.global, .storage_type = known.storage_type};
  if (known.global != Global::other) return global;
  charge(1);
  program_.globals.push_back({module, name});
  global.index = program_.globals.size() - 1;
  return global;
}

Value ProgramBuilder::make_list() {
  charge(1);
  program_.lists.emplace_back();
  return {.kind = Kind::list, .index = program_.lists.size() - 1};
}

Value ProgramBuilder::make_object() {
  charge(1);
  program_.objects.emplace_back();
  return {.kind = Kind::object, .index = program_.objects.size() - 1};
}

void ProgramBuilder::append(const Value& list, std::span<const Value> items) {
  if (list.kind == Kind::object) return;  // of a class that is a list
  check(list.kind == Kind::list, "items are appended to ", to_string(list.kind));
  std::vector<Value>& kept = program_.lists[list.index];
  for (const Value& item : items) {
    if (!keeps_lists_ && !may_hold_tensors(item)) continue;
    charge(1);
    kept.push_back(item);
  }
}

void ProgramBuilder::set_state(const Value& target, const Value& state) {
  check(target.kind == Kind::object || target.kind == Kind::dict, "it sets attributes of ",
        to_string(target.kind));
  if (target.kind == Kind::dict) return;  // _metadata of an OrderedDict
  const auto add = [&](const Value& attributes) {
    if (attributes.kind != Kind::dict) return;
    const Dict& added = program_.dicts[attributes.index];
    charge(added.size());
    Dict& members = program_.objects[target.index];
    members.insert(members.end(), added.begin(), added.end());
  };
  add(state);
  if (state.kind != Kind::tuple || state.count != 2) return;
  for (const Value& part : items(state)) add(part);  // attributes, and those of __slots__
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

void ProgramBuilder::set_items(const Value& target, std::span<const Value> pairs) {
  check(target.kind == Kind::dict || target.kind == Kind::object, "items are set on ",
        to_string(target.kind));
  check(pairs.size() % 2 == 0, "a dictionary has a key without value");
  charge(pairs.size() / 2);
  Dict& members = (target.kind == Kind::dict ? program_.dicts : program_.objects)[target.index];
  for (std::size_t i = 0; i < pairs.size(); i += 2) members.emplace_back(pairs[i], pairs[i + 1]);
}

void ProgramBuilder::set_view(const Value& view, Storage& storage) {
  if (view.kind == Kind::none) return;
  const auto parts = items(view);  // name, first element, number of elements
  check(parts.size() == 3, "a view of a storage has ", parts.size(), " parts, expected 3");
  storage.first = to_size(parts[1]);
  storage.num_elements = to_size(parts[2]);
}

Value ProgramBuilder::make_storage(const Value& id) {
  const auto parts = items(id);
  if (parts.size() >= 2 && parts[0].string == "module" && parts[1].kind == Kind::global)
    return parts[1];  // the class of a model saved whole, with its source
  check((parts.size() == 5 || parts.size() == 6) && parts[0].string == "storage" &&
            parts[1].kind == Kind::global && parts[1].global == Global::storage_type &&
            parts[2].kind == Kind::string && parts[3].kind == Kind::string,
        "it refers to an external object that is not a tensor storage");
  support(parts[2].string.size() <= kMaxStorageKey, "a storage has a name of ", parts[2].string.size(),
          " bytes, at most ", kMaxStorageKey, " are accepted");
  charge(1);
  Storage storage{
      .type = parts[1].storage_type, .key = parts[2].string, .first = 0, .num_elements = to_size(parts[4])};
  if (parts.size() == 6) set_view(parts[5], storage);
  program_.storages.push_back(storage);
  return {.kind = Kind::storage, .index = program_.storages.size() - 1};
}

Value ProgramBuilder::call(const Value& function, const Value& argument_tuple) {
  const auto arguments = items(argument_tuple);
  const auto expect_first = [&](std::size_t count, Kind first, std::string_view made) {
    check(arguments.size() == count && arguments[0].kind == first, made,
          " is made from something other than ", to_string(first));
    return arguments[0];
  };
  if (function.kind == Kind::object) return make_object();
  switch (function.global) {
    case Global::other: return make_object();
    case Global::ordered_dict: check(arguments.empty(), "an OrderedDict has arguments"); return make_dict();
    case Global::counter: return expect_first(1, Kind::dict, "a Counter");
    case Global::size: return expect_first(1, Kind::tuple, "a torch.Size");
    case Global::rebuild_old_tensor:
      check(arguments.size() == 4, "a tensor is made from ", arguments.size(), " values, expected 4");
      return make_tensor(arguments, 4);
    case Global::rebuild_tensor:  // storage, offset, shape, strides, requires_grad, hooks [, metadata]
      check(arguments.size() == 6 || arguments.size() == 7, "a tensor is made from ", arguments.size(),
            " values, expected 6 or 7");
      return make_tensor(arguments, 6);
    case Global::rebuild_typed_tensor:  // the type of the elements before the metadata
      check((arguments.size() == 7 || arguments.size() == 8) && arguments[6].kind == Kind::global &&
                arguments[6].storage_type != nullptr,
            "a tensor is made from something other than a storage, offset, shape, strides and type");
      return make_typed_tensor(arguments);
    case Global::rebuild_parameter:
      return expect_first(3, Kind::tensor, "a parameter");  // requires_grad, hooks
    case Global::rebuild_parameter_and_state: return expect_first(4, Kind::tensor, "a parameter");
    case Global::rebuild_subclass:  // function, class, arguments, attributes
      check(arguments.size() == 4 && arguments[0].kind == Kind::global && arguments[2].kind == Kind::tuple &&
                arguments[0].global != Global::rebuild_subclass,
            "a tensor of a subclass is made from something other than a function and its arguments");
      return call(arguments[0], arguments[2]);
    case Global::dtype:
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

Value ProgramBuilder::make_tensor(std::span<const Value> arguments, std::size_t metadata) {
  check(arguments[0].kind == Kind::storage,
        "a tensor is made from something other than a storage, offset, shape and strides");
  // Metadata marks a tensor as negated or conjugated, which its numbers do not show.
  const bool plain =
      arguments.size() <= metadata || arguments[metadata].kind == Kind::none ||
      (arguments[metadata].kind == Kind::dict && program_.dicts[arguments[metadata].index].empty());
  support(plain, "a tensor carries a pending negation or conjugation (save tensor.resolve_neg())");
  TensorRecord tensor{arguments[0].index, to_size(arguments[1]), to_sizes(arguments[2]),
                      to_sizes(arguments[3])};
  check(tensor.shape.size() == tensor.strides.size(), "a tensor of ", tensor.shape.size(), " dimensions has ",
        tensor.strides.size(), " strides");
  charge(1);
  program_.tensors.push_back(std::move(tensor));
  return {.kind = Kind::tensor, .index = program_.tensors.size() - 1};
}

Value ProgramBuilder::make_typed_tensor(std::span<const Value> arguments) {
  const Value tensor = make_tensor(arguments, 7);
  TensorRecord& record = program_.tensors[tensor.index];
  Storage storage = program_.storages[record.storage];  // of bytes
  const StorageType* const bytes = storage.type;
  storage.type = arguments[6].storage_type;
  check(bytes->element_bytes == 1 && storage.num_elements % storage.type->element_bytes == 0, "a tensor of ",
        storage.type->name, " is in a storage of ", storage.num_elements, " elements of ", bytes->name);
  storage.num_elements /= storage.type->element_bytes;
  charge(1);
  program_.storages.push_back(storage);
  record.storage = program_.storages.size() - 1;
  return tensor;
}

}  // namespace vit::internal::pickle
