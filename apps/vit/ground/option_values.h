// Values of options: parses text into numbers, choices and lists, with uniform error messages.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/usage_error.h"

namespace vit::app {

/// Throws UsageError("expected EXPECTED, found 'VALUE'").
[[noreturn]] void fail_value(const std::string& expected, std::string_view value);

/// The value; an empty one, most often an unset variable, is an error.
const std::string& not_empty(const std::string& value);
/// The parts of a list with commas, without the spaces around each; parts may be empty.
std::vector<std::string> split_at_commas(std::string_view list);
/// The same. Throws UsageError as fail_value() for an empty part.
std::vector<std::string> words_of(std::string_view list, const char* expected);
/// Decimal digits without leading zeros, from `min` to `max`.
std::size_t parse_integer(const std::string& value, std::size_t min, std::size_t max);
double parse_real(const std::string& value, double min, double max);

/// Text, or the path of a file.
template <typename T>
Target text_target(T& destination) {
  return {
      [&destination](const std::vector<std::string>& values) { destination = not_empty(values.front()); }};
}

template <std::integral T>
Target integer_target(T& destination, T min, T max) {
  return {[&destination, min, max](const std::vector<std::string>& values) {
            destination = static_cast<T>(
                parse_integer(values.front(), static_cast<std::size_t>(min), static_cast<std::size_t>(max)));
          },
          std::to_string(destination)};
}

/// A value by its name on the command line.
template <typename T>
using Named = std::pair<std::string_view, T>;

/// --format of results that are printed.
enum class PrintFormat { text, json, csv };
inline constexpr Named<PrintFormat> kPrintFormats[]{
    {"text", PrintFormat::text}, {"json", PrintFormat::json}, {"csv", PrintFormat::csv}};
inline constexpr Named<PrintFormat> kPrintFormatsWithoutCsv[]{{"text", PrintFormat::text},
                                                              {"json", PrintFormat::json}};

/// One of `choices`, which must outlive the target; the default shown is the value of `destination`.
template <typename T, std::size_t N>
Target choice_target(T& destination, const Named<T> (&choices)[N]) {
  std::string names, default_text;
  std::vector<std::string> offered;
  for (const auto& [name, value] : choices) {
    names += (names.empty() ? "" : ", ") + std::string(name);
    offered.emplace_back(name);
    if (value == destination) default_text = name;
  }
  return {[&destination, &choices, names](const std::vector<std::string>& values) {
            for (const auto& [name, value] : choices) {
              if (name == values.front()) {
                destination = value;
                return;
              }
            }
            fail_value(N == 1 ? names : "one of " + names, values.front());
          },
          default_text, offered};
}

/// The target, which also sets `said`.
inline Target noting(Target target, bool& said) {
  target.store = [&said, store = std::move(target.store)](const std::vector<std::string>& values) {
    said = true;
    store(values);
  };
  return target;
}

/// The target with `choices`, which its parser must accept.
inline Target offering(Target target, std::vector<std::string> choices) {
  target.choices = std::move(choices);
  return target;
}

/// Stores parse(value) of the single value.
template <typename T, typename Parse>
Target parsed_target(T& destination, Parse parse, std::string default_text = "") {
  return {
      [&destination, parse](const std::vector<std::string>& values) { destination = parse(values.front()); },
      std::move(default_text)};
}

/// Stores parse(value) of each value, replacing the contents of `destination`.
template <typename T, typename Parse>
Target list_target(std::vector<T>& destination, Parse parse) {
  return {[&destination, parse](const std::vector<std::string>& values) {
    destination.clear();
    for (const std::string& value : values) destination.push_back(parse(value));
  }};
}

/// R, G, B of white, black, gray (grey), #rgb, #rrggbb or "r,g,b" with numbers from 0 to 255, as Pillow's
/// ImageColor reads them. Throws UsageError for anything else.
std::array<unsigned char, 3> parse_color(const std::string& color);

}  // namespace vit::app
