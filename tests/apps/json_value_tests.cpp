#include "apps/vit/ground/json_value.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"

namespace vit::app {

TEST_CASE("apps: a JSON value keeps the order of its members and reads back what it holds") {
  JsonValue value{{"b", 1}, {"a", {{"x", 0.5}, {"y", nullptr}}}, {"list", {1, "two", true}}};
  value["last"] = JsonValue::array();
  value["last"].push_back({{"k", std::vector<std::size_t>{1, 2}}});
  CHECK(value.dump() == R"({"b":1,"a":{"x":0.5,"y":null},"list":[1,"two",true],"last":[{"k":[1,2]}]})");
  CHECK(JsonValue::from(internal::parse_json(value.dump(), "value")) ==
        JsonValue::from(internal::parse_json(value.dump(internal::JsonLayout::indented), "value")));
  CHECK(value["b"].get<std::size_t>() == 1);
  CHECK(value["a"]["x"].get<double>() == 0.5);
  CHECK(std::string(value["list"][1]) == "two");
  CHECK(value["a"]["y"].is_null());
  value.update({{"b", 2}, {"new", 3}});
  value.erase("a");
  CHECK(value.dump() == R"({"b":2,"list":[1,"two",true],"last":[{"k":[1,2]}],"new":3})");
}

TEST_CASE("apps: a JSON value of another kind than the caller takes it for is an error") {
  const JsonValue value{{"text", "a"}, {"number", 1}};
  CHECK_ERROR(ErrorKind::argument, ("absent"), value["absent"].size());
  CHECK_ERROR(ErrorKind::argument, ("not a string"), value["number"].get<std::string>());
  CHECK_ERROR(ErrorKind::argument, ("not a number"), value["text"].get<int>());
  CHECK_ERROR(ErrorKind::argument, ("not an object"), value["text"]["a"].size());
  CHECK_ERROR(ErrorKind::argument, ("not an array"), value["text"][0].size());
}

}  // namespace vit::app
