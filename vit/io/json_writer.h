// Writing JSON: the only place that knows separators, escapes and the notation of numbers.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

/// Spacing between members and elements.
enum class JsonLayout {
  spaced,    ///< {"a": 1, "b": [2, 3]}
  compact,   ///< {"a":1,"b":[2,3]}
  indented,  ///< each member and element on a line of its own, two spaces a level
};
/// Characters beyond ASCII in strings.
enum class JsonText {
  utf8,   ///< as they are; bytes that are not UTF-8 become U+FFFD
  ascii,  ///< as \uXXXX; text that is not UTF-8 is an Error (argument)
};

/// Appends JSON to a string. Separators are the writer's: the caller states values in their order, and calls
/// key() before a member's value. Members without begin_object() are written without braces, for the inside
/// of an object.
class JsonWriter {
 public:
  /// `out` must outlive the writer.
  explicit JsonWriter(std::string& out, JsonLayout layout = JsonLayout::spaced,
                      JsonText encoding = JsonText::utf8)
      : out_(out), layout_(layout), encoding_(encoding) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  /// The next element starts on a line of its own, after one space.
  JsonWriter& on_own_line();

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::nullptr_t) { return json("null"); }
  JsonWriter& value(std::same_as<bool> auto truth) { return json(truth ? "true" : "false"); }
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JsonWriter& value(Number number) {
    return json(std::to_string(number));
  }
  /// The shortest decimal that reads as the same float32, always with a point or an exponent ("8.0", "-0.0",
  /// "1e-05"). JSON has no infinities and no NaN: they become null.
  JsonWriter& value(float number);
  /// The same for a float64, without an exponent from 1e-4 to 1e15.
  JsonWriter& value(double number);
  /// null if there is none.
  template <typename T>
  JsonWriter& value(const std::optional<T>& optional) {
    return optional ? value(*optional) : value(nullptr);
  }
  /// A value that is JSON already.
  JsonWriter& json(std::string_view text);

  /// A key and its value.
  JsonWriter& member(std::string_view name, const auto& content) { return key(name).value(content); }
  /// A key and an array of values.
  template <typename Range>
  JsonWriter& array(std::string_view name, const Range& elements) {
    return key(name).array(elements);
  }
  template <typename Range>
  JsonWriter& array(const Range& elements) {
    begin_array();
    for (const auto& element : elements) value(element);
    return end_array();
  }

 private:
  /// What separates a value from what is before it.
  void separate();
  void break_line();
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);

  std::string& out_;
  JsonLayout layout_;
  JsonText encoding_;
  std::size_t depth_ = 0;
  bool is_first_ = true;   // of its object or array
  bool has_key_ = false;   // the value's key is written
  bool own_line_ = false;  // on_own_line()
};

/// `text` as a JSON string with its quotes. Throws Error (argument) for ASCII and text that is not UTF-8.
std::string json_string(std::string_view text, JsonText encoding = JsonText::utf8);
void append_json_string(std::string& out, std::string_view text, JsonText encoding = JsonText::utf8);
/// As JsonWriter::value(float).
void append_json_float(std::string& out, float number);

}  // namespace vit::internal
