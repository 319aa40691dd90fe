// Events of nlohmann's parser become a flat table of nodes; access walks that table.
#include "vit/weights/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "vit/base/error.h"
#include "vit/weights/in_quotes.h"
#include "vit/weights/mapped_file.h"

namespace vit {

namespace detail {

/// Part of JsonDocument::text or of an index table.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

enum class NodeKind : std::uint8_t { null, boolean, integer, unsigned_integer, real, string, array, object };

struct JsonNode {
  union Value {
    bool boolean;
    std::int64_t integer;
    std::uint64_t unsigned_integer;
    double real;
    Range range;  // string: of text; array, object: of children
  };
  NodeKind kind = NodeKind::null;
  std::uint32_t parent = 0;  // the root is its own parent
  Range key;
  Value value{};
};

/// Nodes in the order of the text, root first. Children of a container are listed in `children`, in file
/// order; `sorted` holds the same list by key for objects.
struct JsonDocument {
  std::string name;
  std::string text;  // all keys and strings, one after another
  std::vector<JsonNode> nodes;
  std::vector<std::uint32_t> children;
  std::vector<std::uint32_t> sorted;

  std::string_view view(Range range) const { return std::string_view(text).substr(range.begin, range.count); }
};

}  // namespace detail

namespace {

using detail::JsonDocument;
using detail::JsonNode;
using detail::NodeKind;
using detail::Range;
using Nlohmann = nlohmann::json;

constexpr std::string_view kWhere = "json";

const char* to_string(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::number:
      return "a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      return "an object";
  }
  return "unknown";
}

/// Walks the text and tells where it is, which the events of the parser do not.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *position_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** position_;
};

/// Receives the events; checks depth, number of values and duplicate keys.
class Builder {
 public:
  Builder(JsonDocument& document, const JsonLimits& limits, std::string_view text)
      : document_(document), limits_(limits), begin_(text.data()), position_(text.data()) {}

  const char** position() { return &position_; }

  // The names and types of these members are nlohmann's SAX interface.
  bool null() {
    add(NodeKind::null);
    return true;
  }
  bool boolean(bool value) {
    add(NodeKind::boolean).value.boolean = value;
    return true;
  }
  bool number_integer(std::int64_t value) {
    add(NodeKind::integer).value.integer = value;
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    add(NodeKind::unsigned_integer).value.unsigned_integer = value;
    return true;
  }
  bool number_float(double value, const std::string&) {
    if (!std::isfinite(value)) refuse("number out of range");
    add(NodeKind::real).value.real = value;
    return true;
  }
  bool string(const std::string& value) {
    const Range range = append(value);
    add(NodeKind::string).value.range = range;
    return true;
  }
  bool binary(const std::vector<std::uint8_t>&) { refuse("binary value"); }
  bool start_object(std::size_t) { return open(NodeKind::object); }
  bool start_array(std::size_t) { return open(NodeKind::array); }
  bool key(const std::string& value) {
    key_ = append(value);
    return true;
  }
  bool end_object() {
    const Range range = close();
    const auto first = document_.sorted.begin() + range.begin;
    const auto last = document_.sorted.end();
    const auto key_of = [this](std::uint32_t node) { return document_.view(document_.nodes[node].key); };
    std::sort(first, last, [&](std::uint32_t a, std::uint32_t b) { return key_of(a) < key_of(b); });
    const auto twice = std::adjacent_find(
        first, last, [&](std::uint32_t a, std::uint32_t b) { return key_of(a) == key_of(b); });
    if (twice != last)
      refuse("key " + in_quotes(key_of(*twice)) + " occurs twice in the object that ends here");
    return true;
  }
  bool end_array() {
    close();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Nlohmann::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...; last read: '...'"
    std::string_view reason = error.what();
    if (const auto bracket = reason.find("] "); bracket != reason.npos) reason.remove_prefix(bracket + 2);
    if (const auto colon = reason.find(": "); reason.starts_with("parse error at") && colon != reason.npos) {
      reason.remove_prefix(colon + 2);
    }
    reason = reason.substr(0, reason.find("; last read"));
    refuse(reason.substr(0, 120));
  }

 private:
  [[noreturn]] void refuse(std::string_view reason) const {
    fail(kWhere, document_.name, ": not valid JSON near byte ", position_ - begin_, ": ", reason);
  }

  Range append(const std::string& value) {
    const auto begin = static_cast<std::uint32_t>(document_.text.size());
    document_.text += value;
    return {begin, static_cast<std::uint32_t>(value.size())};
  }

  JsonNode& add(NodeKind kind) {
    if (document_.nodes.size() >= limits_.max_values)
      refuse(text("more than ", limits_.max_values, " values"));
    const auto index = static_cast<std::uint32_t>(document_.nodes.size());
    if (!open_.empty()) pending_.push_back(index);
    JsonNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.parent = open_.empty() ? index : open_.back().node;
    node.key = std::exchange(key_, {});
    return node;
  }

  bool open(NodeKind kind) {
    if (open_.size() >= limits_.max_depth) refuse(text("nested deeper than ", limits_.max_depth));
    const auto index = static_cast<std::uint32_t>(document_.nodes.size());
    add(kind);
    open_.push_back({index, pending_.size()});
    return true;
  }

  /// Moves the children of the innermost container from pending_ to the tables.
  Range close() {
    const Open container = open_.back();
    open_.pop_back();
    const auto first = pending_.begin() + static_cast<std::ptrdiff_t>(container.first_pending);
    const Range range{static_cast<std::uint32_t>(document_.children.size()),
                      static_cast<std::uint32_t>(pending_.end() - first)};
    document_.children.insert(document_.children.end(), first, pending_.end());
    document_.sorted.insert(document_.sorted.end(), first, pending_.end());
    pending_.erase(first, pending_.end());
    document_.nodes[container.node].value.range = range;
    return range;
  }

  struct Open {
    std::uint32_t node;
    std::size_t first_pending;
  };

  JsonDocument& document_;
  const JsonLimits& limits_;
  const char* begin_;
  const char* position_;
  std::vector<Open> open_;
  std::vector<std::uint32_t> pending_;  // children of the open containers, innermost last
  Range key_;
};

}  // namespace

Json parse_json(std::string_view source, std::string_view name, const JsonLimits& limits) {
  VIT_CHECK(source.size() <= limits.max_bytes && source.size() < std::numeric_limits<std::uint32_t>::max(),
            kWhere, name, ": ", source.size(), " bytes of JSON, at most ", limits.max_bytes, " are accepted");
  auto document = std::make_shared<JsonDocument>();
  document->name = name;
  Builder builder(*document, limits, source);
  const CountingIterator first(source.data(), builder.position());
  const CountingIterator last(source.data() + source.size(), builder.position());
  Nlohmann::sax_parse(first, last, &builder);  // every refusal is an Error thrown by the builder
  return {std::move(document), 0};
}

Json load_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const MappedFile file(path, kWhere);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.size()}, path.string(), limits);
}

Json::Kind Json::kind() const {
  switch (document_->nodes[node_].kind) {
    case NodeKind::null:
      return Kind::null;
    case NodeKind::boolean:
      return Kind::boolean;
    case NodeKind::integer:
    case NodeKind::unsigned_integer:
    case NodeKind::real:
      return Kind::number;
    case NodeKind::string:
      return Kind::string;
    case NodeKind::array:
      return Kind::array;
    case NodeKind::object:
      return Kind::object;
  }
  return Kind::null;
}

std::string Json::where() const {
  std::string place;
  for (std::uint32_t node = node_; document_->nodes[node].parent != node;
       node = document_->nodes[node].parent) {
    const JsonNode& parent = document_->nodes[document_->nodes[node].parent];
    if (parent.kind == NodeKind::object) {
      const std::string_view key = document_->view(document_->nodes[node].key);
      const bool plain = !key.empty() && key.size() <= 100 &&
                         std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
      place = "." + (plain ? std::string(key) : in_quotes(key)) + place;
    } else {
      const auto first = document_->children.begin() + parent.value.range.begin;
      const auto at = std::lower_bound(first, first + parent.value.range.count, node);
      place = "[" + std::to_string(at - first) + "]" + place;
    }
  }
  if (place.starts_with('.')) place.erase(0, 1);
  return document_->name + (place.empty() ? "" : ": " + place);
}

void Json::expect(Kind expected) const {
  VIT_CHECK(kind() == expected, kWhere, where(), " must be ", to_string(expected), ", found ",
            to_string(kind()));
}

std::size_t Json::size() const {
  return is_array() || is_object() ? document_->nodes[node_].value.range.count : 0;
}

Json Json::operator[](std::size_t index) const {
  VIT_CHECK(index < size(), kWhere, where(), " has ", size(), " entries, number ", index, " was asked for");
  return {document_, document_->children[document_->nodes[node_].value.range.begin + index]};
}

std::string_view Json::key() const {
  return document_->view(document_->nodes[node_].key);
}

std::optional<Json> Json::find(std::string_view key) const {
  expect(Kind::object);
  const Range range = document_->nodes[node_].value.range;
  const auto first = document_->sorted.begin() + range.begin;
  const auto last = first + range.count;
  const auto key_of = [this](std::uint32_t node) { return document_->view(document_->nodes[node].key); };
  const auto at = std::lower_bound(first, last, key,
                                   [&](std::uint32_t node, std::string_view k) { return key_of(node) < k; });
  if (at == last || key_of(*at) != key || document_->nodes[*at].kind == NodeKind::null) return std::nullopt;
  return Json(document_, *at);
}

Json Json::at(std::string_view key) const {
  const std::optional<Json> member = find(key);
  VIT_CHECK(member.has_value(), kWhere, where(), " lacks the key ", in_quotes(key));
  return *member;
}

std::size_t Json::as_size(SizeRange range) const {
  expect(Kind::number);
  const JsonNode& node = document_->nodes[node_];
  const auto refuse = [&](const auto& found) {
    fail(kWhere, where(), " must be a whole number from ", range.min, " to ", range.max, ", found ", found);
  };
  std::size_t value = 0;
  if (node.kind == NodeKind::unsigned_integer) {
    value = node.value.unsigned_integer;
  } else if (node.kind == NodeKind::integer) {
    if (node.value.integer < 0) refuse(node.value.integer);
    value = static_cast<std::size_t>(node.value.integer);
  } else {
    const double real = node.value.real;
    if (!(real >= 0.0 && real <= 0x1p53 && std::floor(real) == real)) refuse(real);
    value = static_cast<std::size_t>(real);
  }
  if (value < range.min || value > range.max) refuse(value);
  return value;
}

std::int64_t Json::as_integer() const {
  expect(Kind::number);
  const JsonNode& node = document_->nodes[node_];
  if (node.kind == NodeKind::integer) return node.value.integer;
  if (node.kind == NodeKind::unsigned_integer) {
    VIT_CHECK(node.value.unsigned_integer <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}, kWhere,
              where(), " must be a whole number of 64 bits, found ", node.value.unsigned_integer);
    return static_cast<std::int64_t>(node.value.unsigned_integer);
  }
  const double real = node.value.real;
  VIT_CHECK(std::fabs(real) <= 0x1p53 && std::floor(real) == real, kWhere, where(),
            " must be a whole number, found ", real);
  return static_cast<std::int64_t>(real);
}

double Json::as_double() const {
  expect(Kind::number);
  const JsonNode& node = document_->nodes[node_];
  if (node.kind == NodeKind::integer) return static_cast<double>(node.value.integer);
  if (node.kind == NodeKind::unsigned_integer) return static_cast<double>(node.value.unsigned_integer);
  return node.value.real;
}

bool Json::as_bool() const {
  expect(Kind::boolean);
  return document_->nodes[node_].value.boolean;
}

std::string_view Json::as_string() const {
  expect(Kind::string);
  return document_->view(document_->nodes[node_].value.range);
}

std::vector<double> Json::as_doubles() const {
  expect(Kind::array);
  std::vector<double> values(size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (*this)[i].as_double();
  return values;
}

std::optional<std::size_t> Json::find_size(std::string_view key, SizeRange range) const {
  const auto member = find(key);
  return member ? std::optional(member->as_size(range)) : std::nullopt;
}

std::optional<std::int64_t> Json::find_integer(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->as_integer()) : std::nullopt;
}

std::optional<double> Json::find_double(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->as_double()) : std::nullopt;
}

std::optional<bool> Json::find_bool(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(member->as_bool()) : std::nullopt;
}

std::optional<std::string> Json::find_string(std::string_view key) const {
  const auto member = find(key);
  return member ? std::optional(std::string(member->as_string())) : std::nullopt;
}

std::string json_string(std::string_view text) {
  try {
    return Nlohmann(text).dump(-1, ' ', true);
  } catch (const Nlohmann::exception&) {
    fail(kWhere, in_quotes(text), " is not valid UTF-8");
  }
}

}  // namespace vit
