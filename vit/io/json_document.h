// The table that a parsed JSON text becomes; shared by the parser and by class Json, seen by nobody else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vit::internal::detail {

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

}  // namespace vit::internal::detail
