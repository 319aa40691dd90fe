#include "vit/io/json_writer.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "tests/support/errors.h"
#include "vit/io/json.h"

namespace vit::internal {
namespace {

/// An object of every kind of value.
std::string sample(JsonLayout layout) {
  std::string out;
  JsonWriter json(out, layout);
  json.begin_object().member("a", 1).key("b").begin_array().value(-2).value(true).value(nullptr);
  json.begin_object().end_object().end_array();
  json.array("c", std::vector<std::string>{"x", "y"}).array("d", std::array<float, 0>{}).end_object();
  return out;
}

template <typename Number>
std::string written(Number number) {
  std::string out;
  JsonWriter(out).value(number);
  return out;
}

}  // namespace

TEST_CASE("json writer: the layouts") {
  CHECK(sample(JsonLayout::spaced) == R"({"a": 1, "b": [-2, true, null, {}], "c": ["x", "y"], "d": []})");
  CHECK(sample(JsonLayout::compact) == R"({"a":1,"b":[-2,true,null,{}],"c":["x","y"],"d":[]})");
  CHECK(sample(JsonLayout::indented) ==
        "{\n  \"a\": 1,\n  \"b\": [\n    -2,\n    true,\n    null,\n    {}\n  ],\n  \"c\": [\n    \"x\",\n"
        "    \"y\"\n  ],\n  \"d\": []\n}");
}

TEST_CASE("json writer: members without braces, elements on lines of their own, JSON from elsewhere") {
  std::string out;
  JsonWriter json(out);
  json.member("a", 1).key("b").begin_array().on_own_line().value(1).on_own_line().value(2).end_array();
  json.key("c").json("[3,4]").member("d", std::optional<int>());
  CHECK(out == "\"a\": 1, \"b\": [\n 1,\n 2], \"c\": [3,4], \"d\": null");
}

TEST_CASE("json writer: a number reads as the same number") {
  CHECK(written(0.1f) == "0.1");
  CHECK(written(8.0f) == "8.0");
  CHECK(written(-0.0f) == "-0.0");
  CHECK(written(1e-5f) == "1e-05");
  CHECK(written(0.1) == "0.1");
  CHECK(written(8.0) == "8.0");
  CHECK(written(-0.0) == "-0.0");
  CHECK(written(1e-4) == "0.0001");
  CHECK(written(9.5e-5) == "9.5e-05");
  CHECK(written(123456789012345.0) == "123456789012345.0");
  CHECK(written(1e15) == "1e+15");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(written(std::numeric_limits<float>::infinity()) == "null");
  CHECK(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  for (const double number : {1.0 / 3, 6.02214076e23, 5e-324, 0.000123456789, 1e15 - 0.125}) {
    CHECK(parse_json(written(number), "number").as_double() == number);
    CHECK(static_cast<float>(parse_json(written(static_cast<float>(number)), "number").as_double()) ==
          static_cast<float>(number));
  }
}

TEST_CASE("json writer: strings in UTF-8 and in ASCII") {
  CHECK(json_string("a\"\\\n\x7F\xC3\xBC") == "\"a\\\"\\\\\\u000a\\u007f\xC3\xBC\"");
  CHECK(json_string("\xFF") == "\"\xEF\xBF\xBD\"");
  CHECK(json_string("\xC3\xBC\xF0\x9F\x90\xB1\t", JsonText::ascii) == R"("\u00fc\ud83d\udc31\t")");
  CHECK_ERROR(ErrorKind::argument, ("UTF-8"), json_string("\xFF", JsonText::ascii));
  for (const JsonText encoding : {JsonText::utf8, JsonText::ascii}) {
    for (const std::string text : {"a\"\\\b\f\n\r\t\x01/", "\xE2\x82\xAC\xF0\x9F\x90\xB1"})
      CHECK(parse_json(json_string(text, encoding), "text").as_string() == text);
  }
}

}  // namespace vit::internal
