// A JSON document that a command builds: printed as JSON with --json, and read again for the text form of the
// same result.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "vit/io/json.h"
#include "vit/io/json_writer.h"

namespace vit::app {

/// A value; members of an object keep the order in which they were added. Reading what is not there, or is of
/// another kind, is a defect of the program and throws Error.
class JsonValue {
 public:
  JsonValue() = default;
  JsonValue(std::nullptr_t) {}
  JsonValue(std::same_as<bool> auto truth) : value_(truth) {}
  JsonValue(std::signed_integral auto number) : value_(static_cast<std::int64_t>(number)) {}
  JsonValue(std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>)
      : value_(static_cast<std::uint64_t>(number)) {}
  JsonValue(std::floating_point auto number) : value_(static_cast<double>(number)) {}
  JsonValue(std::string text) : value_(std::move(text)) {}
  JsonValue(std::string_view text) : value_(std::string(text)) {}
  JsonValue(const char* text) : value_(std::string(text)) {}
  template <typename T>
  JsonValue(const std::vector<T>& elements) : value_(Elements(elements.begin(), elements.end())) {}
  /// {{"key", value}, ...} is an object, every other list an array.
  JsonValue(std::initializer_list<JsonValue> list);
  static JsonValue array(std::initializer_list<JsonValue> list = {});
  static JsonValue object();
  /// The value of a parsed document.
  static JsonValue from(const internal::Json& json);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_number() const { return value_.index() >= 2 && value_.index() <= 4; }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_object() const { return std::holds_alternative<Members>(value_); }

  /// The member of an object, added if it is absent; null becomes an object.
  JsonValue& operator[](std::string_view key);
  const JsonValue& operator[](std::string_view key) const;
  const JsonValue& operator[](std::size_t index) const;
  bool contains(std::string_view key) const;
  /// Sets the members of another object.
  void update(const JsonValue& other);
  void erase(std::string_view key);
  /// Adds an element; null becomes an array.
  void push_back(JsonValue element);

  /// Elements of an array, members of an object.
  std::size_t size() const;
  const std::vector<std::pair<std::string, JsonValue>>& items() const;
  auto begin() const { return elements().begin(); }
  auto end() const { return elements().end(); }

  /// A string, or a number as the type asked for.
  template <typename T>
  T get() const {
    if constexpr (std::same_as<T, std::string>) {
      return text();
    } else {
      return std::visit([](auto number) { return static_cast<T>(number); }, number());
    }
  }
  operator std::string() const { return text(); }
  bool operator==(const JsonValue&) const = default;

  void write(internal::JsonWriter& out) const;
  std::string dump(internal::JsonLayout layout = internal::JsonLayout::compact) const;

 private:
  using Elements = std::vector<JsonValue>;
  using Members = std::vector<std::pair<std::string, JsonValue>>;

  const std::string& text() const;
  std::variant<std::int64_t, std::uint64_t, double> number() const;
  const Elements& elements() const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Elements, Members>
      value_;
};

}  // namespace vit::app
