// The maps that `vit anomaly score --maps` writes: numbers, colors, and colors over the image.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "vit/image/image.h"

namespace vit::app {

/// npy, color or overlay. Throws UsageError.
std::string parse_map_format(const std::string& value);

class AnomalyMaps {
 public:
  /// Makes the folder. Throws Error if that fails, or for pictures in a build without OpenCV. `inputs` must
  /// outlive this.
  AnomalyMaps(std::filesystem::path folder, std::vector<std::string> formats, std::span<const Input> inputs);

  bool has(std::string_view format) const;
  /// Writes the map (H, W) of an input: NAME.npy, NAME.png, NAME-overlay.png, with a number after NAME where
  /// an input before had that name. `scale`: the value that has the last color. `source` may be empty unless
  /// there are overlays. Throws Error where a map would replace the file of an input.
  void write(const std::string& input_name, TensorView<const float> map, double scale, const Image& source);

 private:
  /// The path of a file in the folder.
  std::filesystem::path path_of(const std::string& name) const;

  std::filesystem::path folder_;
  InputFiles inputs_;
  std::vector<std::string> formats_;
  std::map<std::string, std::size_t> names_;  // and how many inputs had each
};

}  // namespace vit::app
