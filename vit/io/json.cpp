// Typed access to a JsonDocument, and the words that describe a place in it.
#include "vit/io/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json_document.h"

namespace vit::internal {

namespace {

using detail::JsonNode;
using detail::NodeKind;
using detail::Range;

constexpr Where kWhere{"json", ErrorKind::format};

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

}  // namespace vit::internal
