#include "apps/vit/ground/json_value.h"

#include <algorithm>

#include "vit/base/check.h"

namespace vit::app {
namespace {

/// A member by its key, in a list that may be constant.
template <typename Members>
auto find_member(Members& members, std::string_view key) {
  return std::ranges::find_if(members, [&](const auto& member) { return member.first == key; });
}

}  // namespace

JsonValue::JsonValue(std::initializer_list<JsonValue> list) {
  const auto is_member = [](const JsonValue& value) {
    const auto* const pair = std::get_if<Elements>(&value.value_);
    return pair != nullptr && pair->size() == 2 && pair->front().is_string();
  };
  if (!std::ranges::all_of(list, is_member)) {
    value_ = Elements(list);
    return;
  }
  Members members;
  for (const JsonValue& pair : list) {
    const Elements& both = std::get<Elements>(pair.value_);
    members.emplace_back(both[0].text(), both[1]);
  }
  value_ = std::move(members);
}

JsonValue JsonValue::array(std::initializer_list<JsonValue> list) {
  JsonValue out;
  out.value_ = Elements(list);
  return out;
}

JsonValue JsonValue::object() {
  JsonValue out;
  out.value_ = Members();
  return out;
}

JsonValue JsonValue::from(const internal::Json& json) {
  switch (json.kind()) {
    case internal::Json::Kind::null: return nullptr;
    case internal::Json::Kind::boolean: return json.as_bool();
    case internal::Json::Kind::number:
      if (json.is_integer()) return json.as_integer();
      return json.as_double();
    case internal::Json::Kind::string: return json.as_string();
    case internal::Json::Kind::array: {
      JsonValue out = array();
      for (std::size_t i = 0; i < json.size(); ++i) out.push_back(from(json[i]));
      return out;
    }
    case internal::Json::Kind::object: {
      JsonValue out = object();
      for (std::size_t i = 0; i < json.size(); ++i) out[json[i].key()] = from(json[i]);
      return out;
    }
  }
  return nullptr;
}

JsonValue& JsonValue::operator[](std::string_view key) {
  if (is_null()) value_ = Members();
  Members& members = std::get<Members>(value_);
  const auto found = find_member(members, key);
  if (found != members.end()) return found->second;
  return members.emplace_back(std::string(key), JsonValue()).second;
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  const auto found = find_member(items(), key);
  VIT_CHECK(found != items().end(), "json", "no member ", key);
  return found->second;
}

const JsonValue& JsonValue::operator[](std::size_t index) const {
  return elements().at(index);
}

bool JsonValue::contains(std::string_view key) const {
  return is_object() && find_member(items(), key) != items().end();
}

void JsonValue::update(const JsonValue& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

void JsonValue::erase(std::string_view key) {
  Members& members = std::get<Members>(value_);
  std::erase_if(members, [&](const auto& member) { return member.first == key; });
}

void JsonValue::push_back(JsonValue element) {
  if (is_null()) value_ = Elements();
  std::get<Elements>(value_).push_back(std::move(element));
}

std::size_t JsonValue::size() const {
  return is_object() ? items().size() : elements().size();
}

const std::vector<std::pair<std::string, JsonValue>>& JsonValue::items() const {
  const auto* const members = std::get_if<Members>(&value_);
  VIT_CHECK(members != nullptr, "json", "not an object: ", dump());
  return *members;
}

const JsonValue::Elements& JsonValue::elements() const {
  const auto* const elements = std::get_if<Elements>(&value_);
  VIT_CHECK(elements != nullptr, "json", "not an array: ", dump());
  return *elements;
}

const std::string& JsonValue::text() const {
  const auto* const text = std::get_if<std::string>(&value_);
  VIT_CHECK(text != nullptr, "json", "not a string: ", dump());
  return *text;
}

std::variant<std::int64_t, std::uint64_t, double> JsonValue::number() const {
  if (const auto* const number = std::get_if<std::int64_t>(&value_)) return *number;
  if (const auto* const number = std::get_if<std::uint64_t>(&value_)) return *number;
  const auto* const number = std::get_if<double>(&value_);
  VIT_CHECK(number != nullptr, "json", "not a number: ", dump());
  return *number;
}

void JsonValue::write(internal::JsonWriter& out) const {
  if (const auto* const members = std::get_if<Members>(&value_)) {
    out.begin_object();
    for (const auto& [key, value] : *members) value.write(out.key(key));
    out.end_object();
  } else if (const auto* const elements = std::get_if<Elements>(&value_)) {
    out.begin_array();
    for (const JsonValue& element : *elements) element.write(out);
    out.end_array();
  } else if (is_null()) {
    out.value(nullptr);
  } else if (const auto* const truth = std::get_if<bool>(&value_)) {
    out.value(*truth);
  } else if (is_string()) {
    out.value(text());
  } else {
    std::visit([&](auto number) { out.value(number); }, number());
  }
}

std::string JsonValue::dump(internal::JsonLayout layout) const {
  std::string text;
  internal::JsonWriter out(text, layout);
  write(out);
  return text;
}

}  // namespace vit::app
