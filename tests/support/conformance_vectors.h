// The cases of data/positions, read from their JSON and safetensors files (data/positions/README.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/position/config.h"

namespace vit::test {

/// The tensors of data/positions/NAME.safetensors.
inline FixtureTensors conformance_file(const std::string& name) {
  return FixtureTensors(data_path("positions/" + name + ".safetensors"));
}

/// One case of a convention; members are those of the JSON.
struct ConformanceCase {
  std::string name, title;  // of convention and case
  std::string layout, axis_order, coordinates;
  bool is_axial = false;  // frequencies by theta, one axis per angle
  double theta = 0.0, angle_scale = 1.0, second_axis_shift = 0.0, max_frequency = 0.0, offset = 0.0;
  GridSize grid, reference;
  std::size_t length = 0, frames = 1, axes = 2, heads = 1, head_dim = 0, prefix = 0, suffix = 0, window = 0;
  bool from_corner = false;  // coordinates count from the corner of the window
  bool is_merged = false;    // patches in blocks
  std::shared_ptr<const FixtureTensors> file;

  bool has(const std::string& tensor) const { return file->has(title + "." + tensor); }
  std::vector<std::size_t> shape(const std::string& tensor) const {
    return file->shape(title + "." + tensor);
  }
  std::vector<double> doubles(const std::string& tensor) const { return file->doubles(title + "." + tensor); }
  std::vector<std::int64_t> integers(const std::string& tensor) const {
    const std::vector<std::byte> bytes = file->file().at(title + "." + tensor).bytes.copy();
    std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

inline GridSize grid_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found ? GridSize{(*found)[0].as_size(), (*found)[1].as_size()} : GridSize{};
}

inline ConformanceCase conformance_case(const Json& convention, const Json& json,
                                        std::shared_ptr<const FixtureTensors> file) {
  ConformanceCase c;
  c.name = convention.at("name").as_string();
  c.title = json.key();
  c.layout = convention.at("layout").as_string();
  c.axis_order = convention.find_string("axis_order").value_or("x_then_y");
  c.is_axial = convention.find("angle_scale").has_value();
  c.theta = convention.find_double("theta").value_or(0.0);
  c.angle_scale = convention.find_double("angle_scale").value_or(1.0);
  c.second_axis_shift = convention.find_double("second_axis_shift").value_or(0.0);
  c.max_frequency = convention.find_double("max_frequency").value_or(0.0);
  c.head_dim = json.at("head_dim").as_size();
  c.heads = json.at("heads").as_size();
  c.prefix = json.at("prefix").as_size();
  c.suffix = json.at("suffix").as_size();
  c.file = std::move(file);
  c.length = json.find_size("length").value_or(0);
  c.axes = json.find_size("axes").value_or(1);
  if (c.axes == 1) return c;
  c.coordinates = json.at("coordinates").as_string();
  c.offset = json.at("offset").as_double();
  c.grid = grid_of(json, "grid");
  c.reference = grid_of(json, "reference");
  c.frames = json.at("frames").as_size();
  c.window = json.find_size("window").value_or(0);
  c.from_corner = json.find_bool("from_corner").value_or(false);
  c.is_merged = json.find("merge").has_value();
  return c;
}

/// All cases of rotary conventions, sorted by name.
inline std::vector<ConformanceCase> conformance_cases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("positions"))) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<ConformanceCase> cases;
  for (const auto& path : files) {
    const Json convention = load_json(path);
    const auto found = convention.find("cases");
    if (!found) continue;
    const auto file = std::make_shared<const FixtureTensors>(conformance_file(path.stem().string()));
    for (std::size_t i = 0; i < found->size(); ++i)
      cases.push_back(conformance_case(convention, (*found)[i], file));
  }
  return cases;
}

}  // namespace vit::test
