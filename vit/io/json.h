// JSON: strict parsing of untrusted text, and typed access whose Errors name file and key.
// What the keys mean is for the families and the preprocessing configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vit::internal {

namespace detail {
struct JsonDocument;
}

/// What a parser accepts. Memory use is bounded by about 40 bytes per value.
struct JsonLimits {
  std::size_t max_bytes = 64u << 20;
  std::size_t max_depth = 64;
  std::size_t max_values = 8'000'000;
  /// NaN, Infinity and -Infinity, which Python writes and JSON does not have, are null.
  bool accepts_nonfinite = false;
};

/// Smallest and largest number that as_size() accepts.
struct SizeRange {
  std::size_t min = 0;
  std::size_t max = std::size_t{1} << 53;
};

/// One value of a parsed document. Copying is cheap and keeps the document alive; never changes, so threads
/// may share it. Every access that does not fit throws Error with the file, the key and what was found, for
/// example
/// "[json] config.json: pretrained_cfg.mean[1] must be a number, found a string".
class Json {
 public:
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_number() const { return kind() == Kind::number; }
  /// A number that is written without a point and an exponent, and fits 64 bits with a sign.
  bool is_integer() const;
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  /// File and place: "config.json: pretrained_cfg.mean[1]".
  std::string where() const;
  /// The file, without the place.
  const std::string& file() const;

  /// Throws Error unless the value is of that kind.
  void expect(Kind expected) const;
  /// Throws Error unless the value is an array of `count` elements, in messages `wanted`: "[height, width]".
  void expect_array(std::size_t count, std::string_view wanted) const;

  /// Number of elements or members, 0 for other kinds.
  std::size_t size() const;
  /// Element or, in the order of the file, member `index`.
  Json operator[](std::size_t index) const;
  /// The key under which an object holds this value; empty for elements and the root.
  std::string_view key() const;
  /// The member `key`, or nothing if it is absent or null. Throws Error if this value is no object.
  std::optional<Json> find(std::string_view key) const;
  /// Whether the member `key` is there and null. Throws Error if this value is no object.
  bool has_null(std::string_view key) const;
  /// The member `key`; absent or null is an Error.
  Json at(std::string_view key) const;

  /// An integer in `range`: 224 or 224.0, not -1, 0.5 or "224".
  std::size_t as_size(SizeRange range = {}) const;
  /// An integer that fits 64 bits, exact.
  std::int64_t as_integer() const;
  /// A number; always finite.
  double as_double() const;
  bool as_bool() const;
  /// UTF-8; valid as long as any Json of the document lives.
  std::string_view as_string() const;

  /// Members that may be absent or null.
  std::optional<std::size_t> find_size(std::string_view key, SizeRange range = {}) const;
  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_double(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;

 private:
  std::optional<std::uint32_t> node_of(std::string_view key) const;  // of a member, null or not
  friend Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits);
  Json(std::shared_ptr<const detail::JsonDocument> document, std::uint32_t node)
      : document_(std::move(document)), node_(node) {}
  std::shared_ptr<const detail::JsonDocument> document_;
  std::uint32_t node_ = 0;
};

/// Parses one JSON value (RFC 8259). messages call the text `name`. Throws Error, with the byte
/// position, on malformed text, invalid UTF-8, numbers beyond a double, duplicate keys, text after the value,
/// and exceeded limits.
Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits = {});

/// Parses the JSON value in a file, as parse_json() does.
Json load_json(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace vit::internal
