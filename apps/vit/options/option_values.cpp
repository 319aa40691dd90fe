#include "apps/vit/options/option_values.h"

#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"

namespace vit::app {

void fail_value(const std::string& expected, std::string_view value) {
  fail_usage("expected ", expected, ", found '", printable(value), "'");
}

const std::string& not_empty(const std::string& value) {
  if (value.empty()) fail_usage("is empty");
  return value;
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

}  // namespace vit::app
