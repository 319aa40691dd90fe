#include "apps/vit/ground/option_values.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"

namespace vit::app {

void fail_value(const std::string& expected, std::string_view value) {
  fail_usage("expected ", expected, ", found '", printable(value), "'");
}

const std::string& not_empty(const std::string& value) {
  if (value.empty()) fail_usage("is empty");
  return value;
}

std::vector<std::string> split_at_commas(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    const std::size_t first = std::min(part.find_first_not_of(" \t"), part.size());
    parts.emplace_back(part.substr(first, part.find_last_not_of(" \t") + 1 - first));
    if (comma == list.size()) return parts;
    list.remove_prefix(comma + 1);
  }
}

std::vector<std::string> words_of(std::string_view list, const char* expected) {
  std::vector<std::string> words = split_at_commas(list);
  if (std::ranges::any_of(words, &std::string::empty)) fail_value(expected, list);
  return words;
}

std::size_t parse_integer(const std::string& value, std::size_t min, std::size_t max) {
  std::size_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  const bool has_leading_zero = value.size() > 1 && value.front() == '0';
  if (error != std::errc() || stop != end || has_leading_zero || number < min || number > max)
    fail_value(text("an integer from ", min, " to ", max), value);
  return number;
}

double parse_real(const std::string& value, double min, double max) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= min && number <= max))
    fail_value(text("a number from ", min, " to ", max), value);
  return number;
}

namespace {

using Color = std::array<unsigned char, 3>;

constexpr Named<Color> kColors[]{
    {"white", {255, 255, 255}}, {"black", {0, 0, 0}}, {"gray", {128, 128, 128}}, {"grey", {128, 128, 128}}};

std::optional<unsigned char> parse_byte(std::string_view digits, int base) {
  unsigned char value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Three numbers of `width` digits each.
std::optional<Color> parse_hexadecimal(std::string_view digits, std::size_t width) {
  Color color;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::optional<unsigned char> value = parse_byte(digits.substr(i * width, width), 16);
    if (!value) return std::nullopt;
    color[i] = width == 1 ? static_cast<unsigned char>(17 * *value) : *value;
  }
  return color;
}

std::optional<Color> parse_decimal(std::string_view numbers) {
  Color color;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t end = i < 2 ? numbers.find(',') : numbers.size();
    if (end == numbers.npos) return std::nullopt;
    const std::optional<unsigned char> value = parse_byte(numbers.substr(0, end), 10);
    if (!value) return std::nullopt;
    color[i] = *value;
    numbers.remove_prefix(i < 2 ? end + 1 : end);
  }
  return color;
}

std::optional<Color> find_color(std::string_view text) {
  for (const auto& [name, color] : kColors) {
    if (name == text) return color;
  }
  if (text.starts_with('#') && (text.size() == 4 || text.size() == 7))
    return parse_hexadecimal(text.substr(1), text.size() / 3);
  return parse_decimal(text);
}

}  // namespace

Color parse_color(const std::string& text) {
  const std::optional<Color> color = find_color(text);
  if (!color) fail_value("white, black, gray, #rrggbb or r,g,b from 0 to 255", text);
  return *color;
}

}  // namespace vit::app
