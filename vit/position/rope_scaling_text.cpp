// Rules of rope scaling as they are written on a command line and in records of a run.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "vit/base/check.h"
#include "vit/position/rope_scaling.h"

namespace vit::position {
namespace {

constexpr Where kWhere{"parse_rope_scaling", ErrorKind::argument};
constexpr Where kScaling{"RopeScaling", ErrorKind::argument};
constexpr double kMost = 1e6;

constexpr std::array<std::string_view, 4> kRules{"none", "linear", "ntk", "yarn"};
constexpr std::array<std::string_view, 2> kTruths{"false", "true"};
constexpr std::array<std::string_view, 2> kAxes{"each", "common"};
constexpr std::array<std::string_view, 2> kTemperatures{"none", "log"};

template <std::size_t N>
std::size_t chosen(const std::array<std::string_view, N>& names, std::string_view what,
                   std::string_view value) {
  std::string known;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == value) return i;
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  fail(kWhere, what, " is one of ", known, ", found '", value, "'");
}

double number(std::string_view key, std::string_view value) {
  double out = 0.0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  VIT_CHECK(error == std::errc() && end == value.data() + value.size() && std::isfinite(out), kWhere, key,
            " is a number, found '", value, "'");
  return out;
}

std::string shortest(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), error == std::errc() ? end : digits.data()};
}

void read_pair(std::string_view part, RopeScaling& out) {
  const std::size_t equals = part.find('=');
  VIT_CHECK(equals != std::string_view::npos, kWhere, "expected RULE[,KEY=VALUE...], found '", part, "'");
  const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
  if (key == "axes") {
    out.axes = static_cast<RopeScalingAxes>(chosen(kAxes, "axes", value));
  } else if (key == "temperature") {
    out.temperature = static_cast<RopeTemperature>(chosen(kTemperatures, "temperature", value));
  } else if (key == "factor") {
    out.factor = number(key, value);
    VIT_CHECK(out.factor > 0, kWhere, "factor must be positive, got ", out.factor);
    VIT_CHECK(out.rule != RopeScalingRule::none, kWhere,
              "factor is not allowed with none, which scales nothing");
  } else {
    VIT_CHECK(key == "beta_fast" || key == "beta_slow" || key == "truncate" || key == "attention_factor",
              kWhere,
              "known keys are axes, factor, temperature, and of yarn beta_fast, beta_slow, truncate, "
              "attention_factor; found '",
              key, "'");
    VIT_CHECK(out.rule == RopeScalingRule::yarn, kWhere, key, " requires yarn, found ",
              kRules[static_cast<std::size_t>(out.rule)]);
    if (key == "beta_fast") out.beta_fast = number(key, value);
    if (key == "beta_slow") out.beta_slow = number(key, value);
    if (key == "truncate") out.truncate = chosen(kTruths, "truncate", value) == 1;
    if (key == "attention_factor") out.attention_factor = number(key, value);
  }
}

}  // namespace

RopeScaling parse_rope_scaling(std::string_view value) {
  // Messages quote parts of it, on their one line.
  constexpr std::size_t kMaxBytes = 1000;
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  VIT_CHECK(value.size() <= kMaxBytes && std::ranges::all_of(value, is_printable), kWhere,
            "expected RULE[,KEY=VALUE...], printable ASCII of at most ", kMaxBytes, " bytes");
  RopeScaling out;
  std::size_t end = value.find(',');
  out.rule = static_cast<RopeScalingRule>(chosen(kRules, "the rule", value.substr(0, end)));
  while (end != std::string_view::npos) {
    value.remove_prefix(end + 1);
    end = value.find(',');
    read_pair(value.substr(0, end), out);
  }
  validate(out);
  return out;
}

std::string to_string(const RopeScaling& scaling) {
  const RopeScaling plain{.rule = scaling.rule};
  std::string out(kRules.at(static_cast<std::size_t>(scaling.rule)));
  if (scaling.axes != plain.axes) out += ",axes=common";
  if (scaling.factor != plain.factor) out += ",factor=" + shortest(scaling.factor);
  if (scaling.beta_fast != plain.beta_fast) out += ",beta_fast=" + shortest(scaling.beta_fast);
  if (scaling.beta_slow != plain.beta_slow) out += ",beta_slow=" + shortest(scaling.beta_slow);
  if (scaling.truncate != plain.truncate) out += ",truncate=true";
  if (scaling.attention_factor) out += ",attention_factor=" + shortest(*scaling.attention_factor);
  if (scaling.temperature != plain.temperature) out += ",temperature=log";
  return out;
}

void validate(const RopeScaling& scaling) {
  check_choice(kScaling, "rule", scaling.rule, RopeScalingRule::yarn);
  check_choice(kScaling, "axes", scaling.axes, RopeScalingAxes::common);
  check_choice(kScaling, "temperature", scaling.temperature, RopeTemperature::log);
  VIT_CHECK(scaling.factor == 0.0 || (scaling.factor >= 1.0 / kMost && scaling.factor <= kMost), kScaling,
            "factor must be from 1e-6 to 1e6, got ", scaling.factor);
  VIT_CHECK(scaling.beta_slow > 0 && scaling.beta_slow < scaling.beta_fast && scaling.beta_fast <= kMost,
            kScaling, "beta_slow and beta_fast must be positive and in this order, got ", scaling.beta_slow,
            " and ", scaling.beta_fast);
  const double factor = scaling.attention_factor.value_or(1.0);
  VIT_CHECK(factor > 0 && factor <= 100, kScaling, "attention_factor must be in (0, 100], got ", factor);
}

}  // namespace vit::position
