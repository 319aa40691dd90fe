#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/temporary_file.h"
#include "vit/base/error.h"
#include "vit/weights/files/json.h"

namespace vit {
using namespace internal;

namespace {

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  return test::error_text<Error>([&] { parse_json(text, "a.json", limits); });
}

template <typename Function>
std::string refusal_of(Function&& function) {
  return test::error_text<Error>(function);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
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
  CHECK(root.at("o").size() == 0);
  CHECK(parse_json("[1, 2.5]", "a").as_doubles() == std::vector<double>{1.0, 2.5});
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
  CHECK(contains(refusal(""), "byte 0"));
  CHECK(contains(refusal("{\"a\": 1,}"), "a.json: not valid JSON near byte 9"));
  CHECK(contains(refusal("[1 2]"), "not valid JSON"));
  CHECK(contains(refusal("{} x"), "not valid JSON"));
  CHECK(contains(refusal("[1"), "not valid JSON"));
  CHECK(contains(refusal("NaN"), "not valid JSON"));
  CHECK(contains(refusal("[1e999]"), "number overflow"));
  CHECK(contains(refusal("[-1e999]"), "number overflow"));
  CHECK(contains(refusal("\"\xff\""), "UTF-8"));
  CHECK(contains(refusal("\"\xed\xa0\x80\""), "UTF-8"));
  CHECK(contains(refusal("\"\\ud800\""), "surrogate"));
  CHECK(contains(refusal(std::string("\"a\0b\"", 5)), "not valid JSON"));
  CHECK(contains(refusal(std::string("{}\0", 3)), "not valid JSON near byte 2: a zero byte"));
  CHECK(contains(refusal(std::string("{}\0 rubbish", 11)), "not valid JSON near byte 2"));
  CHECK(contains(refusal("// comment\n1"), "not valid JSON"));
  CHECK(contains(refusal(R"({"a": 1, "b": 2, "a": 3})"), "key \"a\" occurs twice"));
  CHECK(contains(refusal(R"({"a": 1, "\u0061": 3})"), "key \"a\" occurs twice"));
  CHECK(refusal(R"({"a": {"k": 1}, "b": {"k": 1}})") == "no Error");
}

TEST_CASE("weights: json limits hold") {
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')) == "no Error");
  CHECK(contains(refusal(std::string(65, '[') + std::string(65, ']')), "nested deeper than 64"));
  CHECK(contains(refusal(std::string(1'000'000, '[')), "nested deeper than 64"));
  CHECK(contains(refusal("[1, 2, 3]", {.max_values = 3}), "more than 3 values"));
  CHECK(refusal("[1, 2]", {.max_values = 3}) == "no Error");
  CHECK(contains(refusal("[1, 2]", {.max_bytes = 5}), "at most 5"));
}

TEST_CASE("weights: a json access that does not fit names file, key and finding") {
  const Json root =
      parse_json(R"({"cfg": {"mean": [0.5, "x"], "k ey": -1}, "big": 1e300, "half": 0.5, "t": true})", "c");
  CHECK(refusal_of([&] { root.at("cfg").at("mean").as_doubles(); }) ==
        "[json] c: cfg.mean[1] must be a number, found a string");
  CHECK(refusal_of([&] { root.at("cfg").at("k ey").as_size(); }) ==
        "[json] c: cfg.\"k ey\" must be a whole number from 0 to 9007199254740992, found -1");
  CHECK(contains(refusal_of([&] { root.at("big").as_size(); }), "found 1e+300"));
  CHECK(contains(refusal_of([&] { root.at("big").as_integer(); }), "whole number"));
  CHECK(contains(refusal_of([&] { root.at("half").as_size(); }), "found 0.5"));
  CHECK(contains(refusal_of([&] { root.at("t").as_size(); }), "must be a number, found a boolean"));
  CHECK(contains(refusal_of([&] { root.at("t").as_string(); }), "must be a string, found a boolean"));
  CHECK(contains(refusal_of([&] { root.at("half").as_bool(); }), "must be a boolean, found a number"));
  CHECK(contains(refusal_of([&] { root.at("none"); }), "c lacks the key \"none\""));
  CHECK(contains(refusal_of([&] { root.at("t").at("x"); }), "c: t must be an object"));
  CHECK(contains(refusal_of([&] { root.at("cfg").at("mean")[2]; }), "has 2 entries"));
  CHECK(contains(refusal_of([&] { parse_json("7", "c").as_size({.min = 8}); }), "from 8 to"));
  CHECK(contains(refusal_of([&] { parse_json("18446744073709551615", "c").as_integer(); }), "64 bits"));
}

TEST_CASE("weights: messages stay one line whatever the keys are") {
  const std::string text = refusal("{\"a\\nb\": 1, \"a\\nb\": 2}");
  CHECK(contains(text, "a\\x0ab"));
  CHECK(text.find('\n') == std::string::npos);
  const std::string flood = "{\"" + std::string(100'000, 'x') + "\": \"" + std::string(100'000, 'y') + "\"}";
  const Json root = parse_json(flood, "a");
  CHECK(refusal_of([&] { root[0].as_bool(); }).size() < 400);
  CHECK(refusal("\"" + std::string(100'000, 'x')).size() < 400);
  CHECK(refusal("\"\\x\n").find('\n') == std::string::npos);
}

TEST_CASE("weights: json files") {
  const test::TemporaryFolder folder;
  CHECK(load_json(folder.write("a.json", "{\"a\": 1}")).at("a").as_size() == 1);
  CHECK_THROWS_AS(load_json(folder.path() / "b.json"), Error);
  CHECK(json_string("a\"\n\xc3\xa9") == "\"a\\\"\\n\\u00e9\"");
  CHECK_THROWS_AS(json_string("\xff"), Error);
}

}  // namespace vit
