// The opcodes of all protocols, in three groups: constants, containers, and building objects.
#include "vit/io/pickle_program.h"

#include <charconv>
#include <cstring>
#include <map>

#include "vit/base/check.h"

namespace vit::internal::pickle {
namespace {

constexpr std::size_t kMaxGlobalLength = 256;

// Names of Python's pickletools.
enum class Op : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  binbytes = 'B',
  short_binbytes = 'C',
  float_line = 'F',
  int_line = 'I',
  long_line = 'L',
  string_line = 'S',
  binstring = 'T',
  short_binstring = 'U',
  unicode_line = 'V',
  dict = 'd',
  get = 'g',
  inst = 'i',
  list = 'l',
  obj = 'o',
  put = 'p',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binpersid = 'Q',
  reduce = 'R',
  binunicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  appends = 'e',
  binget = 'h',
  long_binget = 'j',
  empty_list = ']',
  empty_tuple = ')',
  empty_dict = '}',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  setitems = 'u',
  binfloat = 'G',
  proto = 0x80,
  newobj = 0x81,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8A,
  long4 = 0x8B,
  short_binunicode = 0x8C,
  binunicode8 = 0x8D,
  binbytes8 = 0x8E,
  empty_set = 0x8F,
  additems = 0x90,
  frozenset = 0x91,
  newobj_ex = 0x92,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
  bytearray8 = 0x96,
};

Value integer_value(std::int64_t integer) {
  return {.kind = Kind::integer, .integer = integer};
}
Value boolean_value(bool boolean) {
  return {.kind = Kind::boolean, .integer = boolean ? 1 : 0};
}

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, std::size_t at, std::string_view name, RunOptions options)
      : bytes_(bytes), at_(at), builder_(name, options.keeps_lists) {}

  /// Runs to the end of the pickle; at() is after it.
  Program run() {
    check(read<std::uint8_t>() == static_cast<std::uint8_t>(Op::proto), "it does not start like a pickle");
    const auto protocol = read<std::uint8_t>();
    builder_.support(protocol >= 2 && protocol <= 5, "protocol ", int{protocol}, ", expected 2 to 5");
    for (;;) {
      builder_.set_position(at_);
      const auto op = static_cast<Op>(read<std::uint8_t>());
      if (op == Op::stop) break;
      if (!run_constant(op) && !run_container(op) && !run_object(op)) {
        check(false, "opcode ", static_cast<int>(op), " does not belong in a checkpoint");
      }
    }
    const Value result = pop();
    check(stack_.empty() && marks_.empty(), "something is left at its end");
    return builder_.finish(result);
  }
  std::size_t at() const { return at_; }

 private:
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    builder_.check(condition, parts...);
  }

  // ------------------------------------------------------------------------------------------------ bytes

  std::span<const std::byte> read_bytes(std::size_t count) {
    check(count <= bytes_.size() - at_, "it is truncated");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

  template <typename T>
  T read() {
    T value;
    std::memcpy(&value, read_bytes(sizeof(T)).data(), sizeof value);
    return value;
  }

  std::string_view read_text(std::size_t count) {
    const auto bytes = read_bytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string_view read_line(std::size_t max_length = kMaxGlobalLength) {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const std::size_t length = rest.substr(0, max_length + 1).find('\n');
    check(length != rest.npos, "a line is truncated or too long");
    at_ += length + 1;
    return rest.substr(0, length);
  }

  /// Two's complement of `count` bytes, lowest first.
  Value read_long(std::size_t count) {
    const auto bytes = read_bytes(count);
    if (count > 8) return {.kind = Kind::number};
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    if (count > 0 && count < 8 && (bits >> (8 * count - 1)) != 0) bits |= ~std::uint64_t{0} << (8 * count);
    return integer_value(static_cast<std::int64_t>(bits));
  }

  /// A decimal number, a truth value ("01") or a long ("5L") as text.
  Value read_number_line() {
    const std::string_view text = read_line();
    if (text == "00" || text == "01") return boolean_value(text == "01");
    std::int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error == std::errc() && (rest.empty() || rest == "L")) return integer_value(integer);
    return {.kind = Kind::number};
  }

  /// The index of a memo entry as text.
  std::size_t read_index_line() {
    const Value index = read_number_line();
    check(index.kind == Kind::integer && index.integer >= 0, "an index of its memo is not a number");
    return static_cast<std::size_t>(index.integer);
  }

  Value read_string_line() {
    std::string_view text = read_line(bytes_.size());
    const bool quoted =
        text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
    check(quoted, "a string lacks its quotes");
    return {.kind = Kind::string, .string = text.substr(1, text.size() - 2)};
  }

  Value read_bytes_of(std::size_t count) {
    read_bytes(count);
    return {.kind = Kind::bytes};
  }

  Value read_string_of(std::size_t count) { return {.kind = Kind::string, .string = read_text(count)}; }

  // ------------------------------------------------------------------------------------------------ stack

  void push(Value value) {
    builder_.support(stack_.size() < kMaxObjects, "more than ", kMaxObjects, " objects on the stack");
    stack_.push_back(value);
  }

  Value pop() {
    check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "it pops more from the stack than there is");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Value pop(Kind expected) {
    const Value value = pop();
    check(value.kind == expected, "expected ", to_string(expected), ", found ", to_string(value.kind));
    return value;
  }

  Value& top() {
    check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "it needs more on the stack than there is");
    return stack_.back();
  }

  /// Position of the innermost mark, which is removed.
  std::size_t pop_mark() {
    check(!marks_.empty(), "a mark is missing");
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }

  /// Removes everything from `first` on from the stack; valid until the next push.
  std::span<const Value> take_from(std::size_t first) {
    taken_.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    return taken_;
  }

  /// The topmost `count` values, none of them below the innermost mark.
  std::span<const Value> take(std::size_t count) {
    check(stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count, "a tuple or dictionary lacks items");
    return take_from(stack_.size() - count);
  }

  void set_items(std::span<const Value> pairs) { builder_.set_items(top(), pairs); }

  void remember(std::size_t index) {
    if (memo_.insert_or_assign(index, top()).second) builder_.charge(1);
  }

  void recall(std::size_t index) {
    const auto found = memo_.find(index);
    check(found != memo_.end(), "it recalls object ", index, ", which it never stored");
    push(found->second);
  }

  // -------------------------------------------------------------------------------------------- opcodes

  bool run_constant(Op op) {
    switch (op) {
      case Op::none: push({}); return true;
      case Op::newtrue: push(boolean_value(true)); return true;
      case Op::newfalse: push(boolean_value(false)); return true;
      case Op::binint: push(integer_value(read<std::int32_t>())); return true;
      case Op::binint1: push(integer_value(read<std::uint8_t>())); return true;
      case Op::binint2: push(integer_value(read<std::uint16_t>())); return true;
      case Op::long1: push(read_long(read<std::uint8_t>())); return true;
      case Op::long4: push(read_long(read<std::uint32_t>())); return true;
      case Op::binfloat:
        read_bytes(8);
        push({.kind = Kind::number});
        return true;
      case Op::short_binunicode:
      case Op::short_binstring: push(read_string_of(read<std::uint8_t>())); return true;
      case Op::binunicode: push(read_string_of(read<std::uint32_t>())); return true;
      case Op::binunicode8: push(read_string_of(read<std::uint64_t>())); return true;
      case Op::binstring: {
        const auto count = read<std::int32_t>();
        check(count >= 0, "a string has a negative length");
        push(read_string_of(static_cast<std::size_t>(count)));
        return true;
      }
      case Op::short_binbytes: push(read_bytes_of(read<std::uint8_t>())); return true;
      case Op::binbytes: push(read_bytes_of(read<std::uint32_t>())); return true;
      case Op::binbytes8:
      case Op::bytearray8: push(read_bytes_of(read<std::uint64_t>())); return true;
      case Op::int_line:
      case Op::long_line:
      case Op::float_line: push(read_number_line()); return true;
      case Op::string_line: push(read_string_line()); return true;
      case Op::unicode_line: push({.kind = Kind::string, .string = read_line(bytes_.size())}); return true;
      default: return false;
    }
  }

  bool run_container(Op op) {
    switch (op) {
      case Op::mark:
        builder_.support(marks_.size() < kMaxObjects, "too many marks");
        marks_.push_back(stack_.size());
        return true;
      case Op::empty_list:
      case Op::empty_set: push(builder_.make_list()); return true;
      case Op::list:
      case Op::frozenset: {
        const std::span<const Value> items = take_from(pop_mark());
        const Value list = builder_.make_list();
        builder_.append(list, items);
        push(list);
        return true;
      }
      case Op::append: {
        const Value item = pop();
        builder_.append(top(), std::span(&item, 1));
        return true;
      }
      case Op::appends:
      case Op::additems: {
        const std::span<const Value> items = take_from(pop_mark());
        builder_.append(top(), items);
        return true;
      }
      case Op::dict: {
        const std::span<const Value> pairs = take_from(pop_mark());
        const Value dict = builder_.make_dict();
        builder_.set_items(dict, pairs);
        push(dict);
        return true;
      }
      case Op::pop: pop(); return true;
      case Op::pop_mark: stack_.resize(pop_mark()); return true;
      case Op::dup: push(Value(top())); return true;
      case Op::empty_tuple: push({.kind = Kind::tuple}); return true;
      case Op::tuple: push(builder_.make_tuple(take_from(pop_mark()))); return true;
      case Op::tuple1: push(builder_.make_tuple(take(1))); return true;
      case Op::tuple2: push(builder_.make_tuple(take(2))); return true;
      case Op::tuple3: push(builder_.make_tuple(take(3))); return true;
      case Op::empty_dict: push(builder_.make_dict()); return true;
      case Op::setitems: set_items(take_from(pop_mark())); return true;
      case Op::setitem: set_items(take(2)); return true;
      case Op::binput: remember(read<std::uint8_t>()); return true;
      case Op::long_binput: remember(read<std::uint32_t>()); return true;
      case Op::put: remember(read_index_line()); return true;
      case Op::get: recall(read_index_line()); return true;
      case Op::memoize: remember(memo_.size()); return true;
      case Op::binget: recall(read<std::uint8_t>()); return true;
      case Op::long_binget: recall(read<std::uint32_t>()); return true;
      default: return false;
    }
  }

  /// The callee: a name, or an object that another call created (a class inside a class).
  Value pop_class() {
    const Value value = pop();
    check(value.kind == Kind::global || value.kind == Kind::object, "it calls ", to_string(value.kind));
    return value;
  }

  /// An object created without a constructor call, which tensors always have.
  Value make_new(const Value& of) {
    builder_.support(of.kind == Kind::object || of.global == Global::other,
                     "it creates an object, without a call, of a class that checkpoints call");
    return builder_.make_object();
  }

  bool run_object(Op op) {
    switch (op) {
      case Op::frame: {  // a hint for buffered readers
        const auto num_bytes = read<std::uint64_t>();
        check(num_bytes <= bytes_.size() - at_, "a frame of ", num_bytes, " bytes runs past the end");
        return true;
      }
      case Op::global: {
        const std::string_view module = read_line();
        push(builder_.find_global(module, read_line()));
        return true;
      }
      case Op::stack_global: {
        const Value name = pop(Kind::string);
        push(builder_.find_global(pop(Kind::string).string, name.string));
        return true;
      }
      case Op::binpersid: push(builder_.make_storage(pop())); return true;
      case Op::reduce: {
        const Value arguments = pop(Kind::tuple);
        push(builder_.call(pop_class(), arguments));
        return true;
      }
      case Op::newobj_ex: pop(); [[fallthrough]];  // arguments by name
      case Op::newobj: {
        pop(Kind::tuple);
        push(make_new(pop_class()));
        return true;
      }
      case Op::inst: {
        const std::string_view module = read_line();
        const Value global = builder_.find_global(module, read_line());
        stack_.resize(pop_mark());
        push(make_new(global));
        return true;
      }
      case Op::obj: {
        const std::span<const Value> items = take_from(pop_mark());
        check(!items.empty() && items[0].kind == Kind::global, "an object has no class");
        push(make_new(items[0]));
        return true;
      }
      case Op::build: {
        const Value state = pop();
        builder_.set_state(top(), state);
        return true;
      }
      default: return false;
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_;
  ProgramBuilder builder_;
  std::vector<Value> stack_;
  std::vector<Value> taken_;
  std::vector<std::size_t> marks_;
  std::map<std::size_t, Value> memo_;  // the file chooses the keys: hashed, they could all collide
};

}  // namespace

void check_size(std::size_t num_bytes, std::string_view name) {
  VIT_CHECK(num_bytes <= kMaxPickleBytes, kOpen.with(ErrorKind::unsupported), name, ": a pickle of ",
            num_bytes, " bytes, at most ", kMaxPickleBytes, " are accepted");
}

Program run(std::span<const std::byte> bytes, std::string_view name) {
  check_size(bytes.size(), name);
  std::size_t at = 0;
  Program program = run_part(bytes, at, name);
  VIT_CHECK(at == bytes.size(), kOpen, name, ": at byte ", at,
            " of the pickle: something is left at its end");
  return program;
}

Program run_part(std::span<const std::byte> bytes, std::size_t& at, std::string_view name,
                 RunOptions options) {
  Machine machine(bytes, at, name, options);
  Program program = machine.run();
  at = machine.at();
  return program;
}

}  // namespace vit::internal::pickle
