#include "apps/vit/rings/dense/prompts_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/read_rest.h"
#include "apps/vit/rings/dense/boxes_file.h"
#include "vit/base/check.h"
#include "vit/io/json.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kPromptFile{"prompts", ErrorKind::format};
constexpr double kFarthestPixel = 1e7;
constexpr std::size_t kMostPrompts = 10'000;  // boxes, objects or points of one image
constexpr JsonLimits kPromptLimits{
    .max_bytes = std::size_t{1} << 24, .max_depth = 8, .max_values = 2'000'000};

double pixel_of(const Json& value) {
  const double out = value.as_double();
  VIT_CHECK(std::abs(out) <= kFarthestPixel, kPromptFile, value.where(), " is ", out, ", expected pixels");
  return out;
}

Box box_in(const Json& value) {
  value.expect_array(4, "[x0, y0, x1, y1]");
  const Box box{pixel_of(value[0]), pixel_of(value[1]), pixel_of(value[2]), pixel_of(value[3])};
  VIT_CHECK(box.x0 < box.x1 && box.y0 < box.y1, kPromptFile, value.where(), " is empty: (", box.x0, ", ",
            box.y0, ", ", box.x1, ", ", box.y1, "), expected x0 < x1 and y0 < y1");
  return box;
}

bool flag_in(const Json& object, const char* key, bool fallback) {
  const auto value = object.find(key);
  return value ? value->as_bool() : fallback;
}

/// Throws Error for a key that is neither among `known` nor what vit detect and vit segment say of a result.
void check_keys(const Json& object, std::initializer_list<std::string_view> known) {
  static constexpr std::string_view kOfResults[]{"index", "score", "id", "area", "label"};
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string_view key = object[i].key();
    if (std::ranges::find(known, key) != known.end() ||
        std::ranges::find(kOfResults, key) != std::end(kOfResults))
      continue;
    std::string names;
    for (const std::string_view one : known) names += (names.empty() ? "" : ", ") + std::string(one);
    fail(kPromptFile, object[i].where(), ": unknown key; there are ", names);
  }
}

ExampleLine example_in(const Json& value) {
  if (value.is_array()) return {.box = box_in(value), .positive = true, .label = {}};
  value.expect(Json::Kind::object);
  check_keys(value, {"box", "positive", "label"});
  return {.box = box_in(value.at("box")),
          .positive = flag_in(value, "positive", true),
          .label = value.find_string("label").value_or("")};
}

PointLine point_in(const Json& value) {
  VIT_CHECK(value.is_array() && (value.size() == 2 || value.size() == 3), kPromptFile, value.where(),
            ": expected [x, y] or [x, y, 1 or 0]");
  PointLine point{.x = pixel_of(value[0]), .y = pixel_of(value[1])};
  if (value.size() == 3) {
    const double label = value[2].as_double();
    VIT_CHECK(label == 0.0 || label == 1.0, kPromptFile, value[2].where(), " is ", label,
              ", expected 1 (part of the object) or 0 (not)");
    point.positive = label == 1.0;
  }
  return point;
}

ObjectLine object_in(const Json& value) {
  value.expect(Json::Kind::object);
  check_keys(value, {"points", "box", "mask", "multimask"});
  ObjectLine out;
  if (const auto points = value.find("points")) {
    VIT_CHECK(points->is_array() && points->size() <= kMostPrompts, kPromptFile, points->where(),
              ": expected a list of at most ", kMostPrompts, " points");
    for (std::size_t i = 0; i < points->size(); ++i) out.points.push_back(point_in((*points)[i]));
  }
  if (const auto box = value.find("box")) out.box.push_back(box_in(*box));
  if (const auto mask = value.find("mask")) out.mask = std::string(mask->as_string());
  out.multimask = flag_in(value, "multimask", true);
  VIT_CHECK(!out.points.empty() || !out.box.empty() || !out.mask.empty(), kPromptFile, value.where(),
            ": an object needs points, a box or a mask");
  return out;
}

template <typename Item>
std::vector<Item> items_in(const Json& list, Item (*item_in)(const Json&)) {
  VIT_CHECK(list.is_array(), kPromptFile, list.where(), " must be a list");
  VIT_CHECK(list.size() <= kMostPrompts, kPromptFile, list.where(), ": more than ", kMostPrompts,
            " for one image");
  std::vector<Item> items;
  for (std::size_t i = 0; i < list.size(); ++i) items.push_back(item_in(list[i]));
  return items;
}

template <typename Item>
std::map<std::string, std::vector<Item>> parse_lists(std::string_view text, const std::string& name,
                                                     const char* key, Item (*item_in)(const Json&)) {
  std::map<std::string, std::vector<Item>> all;
  for_each_json_line(text, name, kPromptLimits, [&](const Json& line) {
    std::vector<Item>& items = all[std::string(line.at("file").as_string())];
    const Json list = line.at(key);
    for (Item& item : items_in(list, item_in)) items.push_back(std::move(item));
    VIT_CHECK(items.size() <= kMostPrompts, kPromptFile, list.where(), ": more than ", kMostPrompts,
              " for one image");
  });
  return all;
}

/// Numbers between commas, all of them.
template <std::size_t count>
std::array<double, count> numbers_of(const std::string& list, const std::string& value,
                                     const char* expected) {
  std::array<double, count> out{};
  const char* at = list.data();
  const char* const end = at + list.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [next, error] = std::from_chars(at, end, out[i]);
    const bool is_last = i + 1 == count;
    if (error != std::errc() || (is_last ? next != end : next == end || *next != ',') ||
        !(std::abs(out[i]) <= kFarthestPixel))
      fail_value(expected, value);
    at = next + 1;
  }
  return out;
}

}  // namespace

std::map<std::string, std::vector<ExampleLine>> parse_example_boxes(std::string_view text,
                                                                    const std::string& name) {
  return parse_lists<ExampleLine>(text, name, "boxes", example_in);
}

std::map<std::string, std::vector<ObjectLine>> parse_objects(std::string_view text, const std::string& name) {
  return parse_lists<ObjectLine>(text, name, "objects", object_in);
}

std::vector<ExampleLine> read_example_boxes(const Json& list) {
  return items_in<ExampleLine>(list, example_in);
}

std::vector<ObjectLine> read_objects(const Json& list) {
  return items_in<ObjectLine>(list, object_in);
}

PointLine read_point(const Json& value) {
  return point_in(value);
}

Box read_box(const Json& value) {
  return box_in(value);
}

std::string read_prompts_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  VIT_CHECK(file, (Where{"prompts", ErrorKind::io}), path.string(), ": the file of prompts cannot be read");
  return read_rest(file, path);
}

PointLine parse_point(const std::string& value) {
  constexpr const char* kExpected = "X,Y or X,Y,- in pixels of the image";
  const bool is_negative = value.ends_with(",-"), is_marked = is_negative || value.ends_with(",+");
  const auto [x, y] = numbers_of<2>(is_marked ? value.substr(0, value.size() - 2) : value, value, kExpected);
  return {.x = x, .y = y, .positive = !is_negative};
}

Box parse_box(const std::string& value) {
  constexpr const char* kExpected = "X0,Y0,X1,Y1 in pixels of the image, X0 < X1 and Y0 < Y1";
  const auto [x0, y0, x1, y1] = numbers_of<4>(value, value, kExpected);
  if (!(x0 < x1 && y0 < y1)) fail_value(kExpected, value);
  return {x0, y0, x1, y1};
}

}  // namespace vit::app
