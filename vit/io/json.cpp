// A parsed document is a table of nodes: built from the values that JsonStream reads, accessed by class Json.
#include "vit/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json_stream.h"
#include "vit/io/source_file.h"

namespace vit::internal {

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

constexpr Where kWhere{"json", ErrorKind::format};
constexpr Where kLimit = kWhere.with(ErrorKind::unsupported);

/// Fills a document. Depth of recursion and number of nodes are those of the limits.
class Builder {
 public:
  Builder(JsonDocument& document, std::string_view text, const JsonLimits& limits)
      : document_(document), limits_(limits), json_(text, document.name, kWhere, limits.max_depth) {}

  void build() {
    read_value(0, {});
    json_.finish();
  }

 private:
  void read_value(std::uint32_t parent, Range key) {
    VIT_CHECK(document_.nodes.size() < limits_.max_values, kLimit, document_.name, ": more than ",
              limits_.max_values, " values");
    const auto index = static_cast<std::uint32_t>(document_.nodes.size());
    JsonNode node{.parent = parent, .key = key};
    document_.nodes.push_back(node);
    if (limits_.accepts_nonfinite && json_.skip_nonfinite()) return;  // a null
    switch (json_.peek()) {
      case '{':
        node.kind = NodeKind::object;
        node.value.range = read_members(index);
        break;
      case '[':
        node.kind = NodeKind::array;
        node.value.range = read_elements(index);
        break;
      case '"':
        node.kind = NodeKind::string;
        node.value.range = append(json_.string());
        break;
      case '0': read_number(node); break;
      case 'n': json_.null(); break;
      default: node.kind = NodeKind::boolean; node.value.boolean = json_.boolean();
    }
    document_.nodes[index] = node;
  }

  void read_number(JsonNode& node) {
    const std::string_view text = json_.number_text();
    const char* const end = text.data() + text.size();
    const auto reads_as = [&](auto& value) {
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      return error == std::errc{} && stop == end;
    };
    if (reads_as(node.value.integer)) {
      node.kind = NodeKind::integer;
    } else if (reads_as(node.value.unsigned_integer)) {
      node.kind = NodeKind::unsigned_integer;
    } else {
      node.kind = NodeKind::real;
      node.value.real = json_.to_double(text);
    }
  }

  Range read_members(std::uint32_t object) {
    const std::size_t first = pending_.size();
    std::string key;
    for (json_.enter_object(); json_.next_member(key);) read_child(object, append(key));
    const Range members = list_children(first);
    const auto begin = document_.sorted.begin() + members.begin;
    const auto end = document_.sorted.end();
    const auto key_of = [this](std::uint32_t node) { return document_.view(document_.nodes[node].key); };
    std::sort(begin, end, [&](std::uint32_t a, std::uint32_t b) { return key_of(a) < key_of(b); });
    const auto twice = std::adjacent_find(
        begin, end, [&](std::uint32_t a, std::uint32_t b) { return key_of(a) == key_of(b); });
    if (twice != end)
      json_.fail_here("key " + in_quotes(key_of(*twice)) + " occurs twice in the object that ends here");
    return members;
  }

  Range read_elements(std::uint32_t array) {
    const std::size_t first = pending_.size();
    for (json_.enter_array(); json_.next_element();) read_child(array, {});
    return list_children(first);
  }

  void read_child(std::uint32_t parent, Range key) {
    pending_.push_back(static_cast<std::uint32_t>(document_.nodes.size()));
    read_value(parent, key);
  }

  /// Moves the children of the container that ends here from pending_ to the tables.
  Range list_children(std::size_t first_pending) {
    const auto first = pending_.begin() + static_cast<std::ptrdiff_t>(first_pending);
    const Range range{static_cast<std::uint32_t>(document_.children.size()),
                      static_cast<std::uint32_t>(pending_.end() - first)};
    document_.children.insert(document_.children.end(), first, pending_.end());
    document_.sorted.insert(document_.sorted.end(), first, pending_.end());
    pending_.erase(first, pending_.end());
    return range;
  }

  Range append(std::string_view value) {
    const auto begin = static_cast<std::uint32_t>(document_.text.size());
    document_.text += value;
    return {begin, static_cast<std::uint32_t>(value.size())};
  }

  JsonDocument& document_;
  const JsonLimits& limits_;
  JsonStream json_;
  std::vector<std::uint32_t> pending_;  // children of the open containers, innermost last
};

void check_size(std::size_t num_bytes, std::string_view name, const JsonLimits& limits) {
  VIT_CHECK(num_bytes <= limits.max_bytes && num_bytes < std::numeric_limits<std::uint32_t>::max(), kLimit,
            name, ": ", num_bytes, " bytes of JSON, at most ", limits.max_bytes, " are accepted");
}

const char* to_string(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null: return "null";
    case Json::Kind::boolean: return "a boolean";
    case Json::Kind::number: return "a number";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "an array";
    case Json::Kind::object: return "an object";
  }
  return "unknown";
}

}  // namespace

Json::Kind Json::kind() const {
  switch (document_->nodes[node_].kind) {
    case NodeKind::null: return Kind::null;
    case NodeKind::boolean: return Kind::boolean;
    case NodeKind::integer:
    case NodeKind::unsigned_integer:
    case NodeKind::real: return Kind::number;
    case NodeKind::string: return Kind::string;
    case NodeKind::array: return Kind::array;
    case NodeKind::object: return Kind::object;
  }
  return Kind::null;
}

bool Json::is_integer() const {
  return document_->nodes[node_].kind == NodeKind::integer;
}

std::string Json::where() const {
  std::string place;
  for (std::uint32_t node = node_; document_->nodes[node].parent != node;
       node = document_->nodes[node].parent) {
    const JsonNode& parent = document_->nodes[document_->nodes[node].parent];
    if (parent.kind == NodeKind::object) {
      const std::string_view key = document_->view(document_->nodes[node].key);
      place = "." + plain_or_quoted(key) + place;
    } else {
      const auto first = document_->children.begin() + parent.value.range.begin;
      const auto at = std::lower_bound(first, first + parent.value.range.count, node);
      place = "[" + std::to_string(at - first) + "]" + place;
    }
  }
  if (place.starts_with('.')) place.erase(0, 1);
  return document_->name + (place.empty() ? "" : ": " + place);
}

const std::string& Json::file() const {
  return document_->name;
}

void Json::expect(Kind expected) const {
  VIT_CHECK(kind() == expected, kWhere, where(), " must be ", to_string(expected), ", found ",
            to_string(kind()));
}

void Json::expect_array(std::size_t count, std::string_view wanted) const {
  VIT_CHECK(is_array() && size() == count, kWhere, where(), " must be ", wanted);
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

std::optional<std::uint32_t> Json::node_of(std::string_view key) const {
  expect(Kind::object);
  const Range range = document_->nodes[node_].value.range;
  const auto first = document_->sorted.begin() + range.begin;
  const auto last = first + range.count;
  const auto key_of = [this](std::uint32_t node) { return document_->view(document_->nodes[node].key); };
  const auto at = std::lower_bound(first, last, key,
                                   [&](std::uint32_t node, std::string_view k) { return key_of(node) < k; });
  return at == last || key_of(*at) != key ? std::nullopt : std::optional(*at);
}

std::optional<Json> Json::find(std::string_view key) const {
  const std::optional<std::uint32_t> node = node_of(key);
  if (!node || document_->nodes[*node].kind == NodeKind::null) return std::nullopt;
  return Json(document_, *node);
}

bool Json::has_null(std::string_view key) const {
  const std::optional<std::uint32_t> node = node_of(key);
  return node && document_->nodes[*node].kind == NodeKind::null;
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
    fail(kWhere, where(), " must be an integer from ", range.min, " to ", range.max, ", found ", found);
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
              where(), " must be an integer of 64 bits, found ", node.value.unsigned_integer);
    return static_cast<std::int64_t>(node.value.unsigned_integer);
  }
  const double real = node.value.real;
  VIT_CHECK(std::fabs(real) <= 0x1p53 && std::floor(real) == real, kWhere, where(),
            " must be an integer, found ", real);
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

Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  check_size(text.size(), name, limits);
  auto document = std::make_shared<JsonDocument>();
  document->name = name;
  Builder(*document, text, limits).build();
  return {std::move(document), 0};
}

Json load_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const SourceFile file(path, kWhere);
  check_size(file.size(), path.string(), limits);
  return parse_json(file.text(), path.string(), limits);
}

}  // namespace vit::internal
