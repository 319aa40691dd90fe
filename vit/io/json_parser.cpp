// Events of nlohmann's parser become the nodes of a JsonDocument; the only file that knows that library.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/json_document.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

using detail::JsonDocument;
using detail::JsonNode;
using detail::NodeKind;
using detail::Range;
using Nlohmann = nlohmann::json;

constexpr Where kWhere{"json", ErrorKind::format};
constexpr Where kLimit = kWhere.with(ErrorKind::unsupported);

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
      fail(kLimit, document_.name, ": more than ", limits_.max_values, " values");
    const auto index = static_cast<std::uint32_t>(document_.nodes.size());
    if (!open_.empty()) pending_.push_back(index);
    JsonNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.parent = open_.empty() ? index : open_.back().node;
    node.key = std::exchange(key_, {});
    return node;
  }

  bool open(NodeKind kind) {
    VIT_CHECK(open_.size() < limits_.max_depth, kLimit, document_.name, ": nested deeper than ",
              limits_.max_depth, " near byte ", position_ - begin_);
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

namespace {

void check_size(std::size_t num_bytes, std::string_view name, const JsonLimits& limits) {
  VIT_CHECK(num_bytes <= limits.max_bytes && num_bytes < std::numeric_limits<std::uint32_t>::max(), kLimit,
            name, ": ", num_bytes, " bytes of JSON, at most ", limits.max_bytes, " are accepted");
}

}  // namespace

Json parse_json(std::string_view source, std::string_view name, const JsonLimits& limits) {
  check_size(source.size(), name, limits);
  // Allowed nowhere; the parser would take one behind the value for the end of the text.
  const std::size_t zero = source.find('\0');
  VIT_CHECK(zero == std::string_view::npos, kWhere, name, ": not valid JSON near byte ", zero,
            ": a zero byte");
  auto document = std::make_shared<JsonDocument>();
  document->name = name;
  Builder builder(*document, limits, source);
  const CountingIterator first(source.data(), builder.position());
  const CountingIterator last(source.data() + source.size(), builder.position());
  Nlohmann::sax_parse(first, last, &builder);  // every refusal is an Error thrown by the builder
  return {std::move(document), 0};
}

Json load_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const SourceFile file(path, kWhere);
  check_size(file.size(), path.string(), limits);
  return parse_json(file.text(), path.string(), limits);
}

std::string json_string(std::string_view text) {
  try {
    return Nlohmann(text).dump(-1, ' ', true);
  } catch (const Nlohmann::exception&) {
    fail(kWhere.with(ErrorKind::argument), in_quotes(text), " is not valid UTF-8");
  }
}

}  // namespace vit::internal
