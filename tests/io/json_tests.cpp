#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/json_numbers.h"
#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"

namespace vit {
using namespace internal;

namespace {

Json parse(std::string_view text, const JsonLimits& limits = {}) {
  return parse_json(text, "a.json", limits);
}

std::string message(std::string_view text) {
  return test::message_of([&] { parse(text); });
}

}  // namespace

TEST_CASE("weights: json values arrive with their types and in order") {
  const Json root =
      parse_json(R"( {"z": 224, "a": [0.5, -3, 1e2, true], "s": "\u00e9\n", "n": null, "o": {}} )", "a");
  REQUIRE(root.size() == 5);
  CHECK(root[0].key() == "z");
  CHECK(root.at("z").as_size() == 224);
  CHECK(root.at("a")[0].as_double() == 0.5);
  CHECK(root.at("a")[1].as_integer() == -3);
  CHECK(root.at("a")[2].as_size() == 100);
  CHECK(root.at("a")[3].as_bool());
  CHECK(root.at("s").as_string() == "\xc3\xa9\n");
  CHECK(root[3].is_null());
  CHECK_FALSE(root.find("n").has_value());
  CHECK_FALSE(root.find("absent").has_value());
  CHECK(root.has_null("n"));
  CHECK_FALSE(root.has_null("absent"));
  CHECK(root.at("o").size() == 0);
  CHECK(test::numbers_of(parse_json("[1, 2.5]", "a")) == std::vector<double>{1.0, 2.5});
  CHECK(root.find_size("z") == 224);
  CHECK_FALSE(root.find_string("n").has_value());
  CHECK(parse_json("18446744073709551615", "a").as_size({.max = ~std::size_t{0}}) == ~std::size_t{0});
  CHECK(parse_json("-9223372036854775808", "a").as_integer() == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("weights: a json value outlives the document it came from") {
  const Json inner = [] { return parse_json(R"({"a": {"b": "text"}})", "a").at("a").at("b"); }();
  CHECK(inner.as_string() == "text");
  CHECK(inner.where() == "a: a.b");
}

TEST_CASE("weights: malformed json is refused with its position") {
  CHECK_ERROR(ErrorKind::format, ("a.json", "byte 0"), parse(""));
  CHECK_ERROR(ErrorKind::format, ("a.json", "byte 8"), parse("{\"a\": 1,}"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("[1 2]"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("{} x"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("[1"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("NaN"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("[1e999]"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("[-1e999]"));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("\"\xff\""));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("\"\xed\xa0\x80\""));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("\"\\ud800\""));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse(std::string("\"a\0b\"", 5)));
  CHECK_ERROR(ErrorKind::format, ("a.json", "byte 2"), parse(std::string("{}\0", 3)));
  CHECK_ERROR(ErrorKind::format, ("a.json", "byte 2"), parse(std::string("{}\0 rubbish", 11)));
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("// comment\n1"));
  CHECK_ERROR(ErrorKind::format, ("a.json", "\"a\""), parse(R"({"a": 1, "b": 2, "a": 3})"));
  CHECK_ERROR(ErrorKind::format, ("a.json", "\"a\""), parse(R"({"a": 1, "\u0061": 3})"));
  CHECK_NOTHROW(parse(R"({"a": {"k": 1}, "b": {"k": 1}})"));
}

TEST_CASE("weights: a number that is too small for a double is zero, one that is too large is refused") {
  const std::string zeros(400, '0');
  for (const std::string& small : {std::string("1e-400"), std::string("123.5E-9999"), "0." + zeros + "1e+5",
                                   "0." + zeros + "1", std::string("9e-99999999999999999999")}) {
    CAPTURE(small);
    CHECK(parse(small).as_double() == 0.0);
    CHECK(std::signbit(parse("-" + small).as_double()));
  }
  for (const std::string& large : {std::string("1e400"), "1" + zeros, "1" + zeros + ".5e-20",
                                   "0." + zeros + "1e800", std::string("9e99999999999999999999")}) {
    CAPTURE(large);
    CHECK_ERROR(ErrorKind::format, ("a.json", "does not fit a double"), parse(large));
  }
  CHECK(parse("1" + zeros + "e-400").as_double() == 1.0);
  CHECK(parse("5e-324").as_double() == std::numeric_limits<double>::denorm_min());
}

TEST_CASE("weights: numbers that only Python writes are null where a caller accepts them") {
  const char* const text = R"({"a": ["exp", -Infinity, Infinity], "b": NaN, "c": 1})";
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse(text));
  const Json json = parse(text, {.accepts_nonfinite = true});
  CHECK(json.at("a").size() == 3);
  CHECK(json.at("a")[1].is_null());
  CHECK(!json.find_double("b"));
  CHECK(json.find_size("c") == 1);
  CHECK_ERROR(ErrorKind::format, ("a.json"), parse("[-Inf]", {.accepts_nonfinite = true}));
}

TEST_CASE("weights: json limits hold") {
  CHECK_NOTHROW(parse(std::string(64, '[') + std::string(64, ']')));
  CHECK_ERROR(ErrorKind::unsupported, ("a.json", "64"), parse(std::string(65, '[') + std::string(65, ']')));
  CHECK_ERROR(ErrorKind::unsupported, ("a.json", "64"), parse(std::string(1'000'000, '[')));
  CHECK_ERROR(ErrorKind::unsupported, ("a.json", "3"), parse("[1, 2, 3]", {.max_values = 3}));
  CHECK_NOTHROW(parse("[1, 2]", {.max_values = 3}));
  CHECK_ERROR(ErrorKind::unsupported, ("a.json", "5"), parse("[1, 2]", {.max_bytes = 5}));
}

TEST_CASE("weights: a json access that does not fit names file, key and finding") {
  const Json root =
      parse_json(R"({"cfg": {"mean": [0.5, "x"], "k ey": -1}, "big": 1e300, "half": 0.5, "t": true})", "c");
  CHECK(test::message_of([&] { root.at("cfg").at("mean")[1].as_double(); }) ==
        "[json] c: cfg.mean[1] must be a number, found a string");
  CHECK(test::message_of([&] { root.at("cfg").at("k ey").as_size(); }) ==
        "[json] c: cfg.\"k ey\" must be an integer from 0 to 9007199254740992, found -1");
  CHECK_ERROR(ErrorKind::format, ("c: big", "1e+300"), root.at("big").as_size());
  CHECK_ERROR(ErrorKind::format, ("c: big"), root.at("big").as_integer());
  CHECK_ERROR(ErrorKind::format, ("c: half", "0.5"), root.at("half").as_size());
  CHECK_ERROR(ErrorKind::format, ("c: t"), root.at("t").as_size());
  CHECK_ERROR(ErrorKind::format, ("c: t"), root.at("t").as_string());
  CHECK_ERROR(ErrorKind::format, ("c: half"), root.at("half").as_bool());
  CHECK_ERROR(ErrorKind::format, ("c", "\"none\""), root.at("none"));
  CHECK_ERROR(ErrorKind::format, ("c: t"), root.at("t").at("x"));
  CHECK_ERROR(ErrorKind::format, ("c: cfg.mean", "2"), root.at("cfg").at("mean")[2]);
  CHECK_ERROR(ErrorKind::format, ("c", "8", "7"), parse_json("7", "c").as_size({.min = 8}));
  CHECK_ERROR(ErrorKind::format, ("c", "18446744073709551615"),
              parse_json("18446744073709551615", "c").as_integer());
}

TEST_CASE("weights: messages stay one line whatever the keys are") {
  const std::string text = message("{\"a\\nb\": 1, \"a\\nb\": 2}");
  CHECK(test::contains(text, "a\\x0ab"));
  CHECK(text.find('\n') == std::string::npos);
  const std::string flood = "{\"" + std::string(100'000, 'x') + "\": \"" + std::string(100'000, 'y') + "\"}";
  const Json root = parse_json(flood, "a");
  CHECK(test::message_of([&] { root[0].as_bool(); }).size() < 400);
  CHECK(message("\"" + std::string(100'000, 'x')).size() < 400);
  CHECK(message("\"\\x\n").find('\n') == std::string::npos);
}

TEST_CASE("weights: json files") {
  const test::TemporaryFolder folder;
  CHECK(load_json(folder.write("a.json", "{\"a\": 1}")).at("a").as_size() == 1);
  CHECK_ERROR(ErrorKind::io, ("b.json"), load_json(folder.path() / "b.json"));
  CHECK(json_string("a\"\n\xc3\xa9", JsonText::ascii) == "\"a\\\"\\n\\u00e9\"");
  CHECK_ERROR(ErrorKind::argument, ("\xff"), json_string("\xff", JsonText::ascii));
}

}  // namespace vit
