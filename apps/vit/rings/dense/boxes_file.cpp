#include "apps/vit/rings/dense/boxes_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>

#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/sha256.h"
#include "vit/base/check.h"
#include "vit/io/json.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kWhere{"boxes", ErrorKind::format};
constexpr double kMostPixels = 1e7;          // of a coordinate
constexpr std::size_t kMostBoxes = 100'000;  // of one image
constexpr JsonLimits kLimits{.max_bytes = std::size_t{1} << 24, .max_depth = 8, .max_values = 2'000'000};

std::array<double, 4> four_numbers(const Json& value, std::string_view wanted) {
  value.expect_array(4, wanted);
  std::array<double, 4> out{};
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = value[i].as_double();
    VIT_CHECK(std::abs(out[i]) <= kMostPixels, kWhere, value[i].where(), " is ", out[i], ", expected pixels");
  }
  return out;
}

Box corners(const Json& value) {
  const auto [x0, y0, x1, y1] = four_numbers(value, "[x0, y0, x1, y1]");
  VIT_CHECK(x0 < x1 && y0 < y1, kWhere, value.where(), " is empty: (", x0, ", ", y0, ", ", x1, ", ", y1,
            "), expected x0 < x1 and y0 < y1");
  return {x0, y0, x1, y1};
}

Box place_and_size(const Json& value) {
  const auto [x, y, width, height] = four_numbers(value, "[x, y, width, height]");
  VIT_CHECK(width > 0.0 && height > 0.0, kWhere, value.where(), " is empty: ", width, " x ", height,
            " pixels");
  return {x, y, x + width, y + height};
}

/// Nothing for an object of another label.
std::optional<Box> box_of(const Json& value, std::span<const std::string> labels) {
  if (!value.is_object()) {
    VIT_CHECK(labels.empty(), kWhere, value.where(), " has no label, and boxes of some labels are asked for");
    return corners(value);
  }
  if (!labels.empty()) {
    const std::optional<std::string> label = value.find_string("label");
    VIT_CHECK(label, kWhere, value.where(), " has no label, and boxes of some labels are asked for");
    if (std::ranges::find(labels, *label) == labels.end()) return std::nullopt;
  }
  if (const auto bbox = value.find("bbox")) return place_and_size(*bbox);
  return corners(value.at("box"));
}

void add_boxes(const Json& line, std::span<const std::string> labels, std::vector<Box>& boxes) {
  const auto add = [&](const Json& value) {
    if (const auto box = box_of(value, labels)) boxes.push_back(*box);
    VIT_CHECK(boxes.size() <= kMostBoxes, kWhere, value.where(), ": more than ", kMostBoxes,
              " boxes of one image");
  };
  std::optional<Json> list = line;
  if (!line.is_array()) list = line.find("boxes");
  if (!list) list = line.find("poses");
  if (!list) return add(line);
  VIT_CHECK(list->is_array(), kWhere, list->where(), " must be a list of boxes");
  for (std::size_t i = 0; i < list->size(); ++i) add((*list)[i]);
}

}  // namespace

std::vector<Box> read_boxes(const Json& value, std::span<const std::string> labels) {
  VIT_CHECK(value.is_array() || value.is_object(), kWhere, value.where(), " must be a list of boxes");
  std::vector<Box> out;
  add_boxes(value, labels, out);
  return out;
}

void for_each_json_line(std::string_view text, const std::string& name, const JsonLimits& limits,
                        const std::function<void(const Json&)>& add) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const Json json = parse_json(line, vit::text(name, " line ", number), limits);
    json.expect(Json::Kind::object);
    add(json);
  }
}

BoxesFile::BoxesFile(std::string_view text, const std::string& name, std::span<const std::string> labels)
    : digest_(sha256(std::as_bytes(std::span(text)))) {
  for_each_json_line(text, name, kLimits, [&](const Json& line) {
    add_boxes(line, labels, boxes_[std::string(line.at("file").as_string())]);
  });
}

BoxesFile BoxesFile::read(const std::filesystem::path& path, std::span<const std::string> labels) {
  std::ifstream file(path, std::ios::binary);
  VIT_CHECK(file, (Where{"boxes", ErrorKind::io}), path.string(), ": the file of boxes cannot be read");
  return {read_rest(file, path), path.string(), labels};
}

const std::vector<Box>* BoxesFile::find(const std::string& name) const {
  const auto found = boxes_.find(name);
  return found != boxes_.end() ? &found->second : nullptr;
}

}  // namespace vit::app
