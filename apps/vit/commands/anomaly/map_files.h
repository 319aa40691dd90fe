// The maps that `vit anomaly score --maps` writes: numbers, colors, and colors over the image.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vit/image/image.h"

namespace vit::app {

/// npy, color or overlay. Throws UsageError.
std::string parse_map_format(const std::string& value);

class MapFolder {
 public:
  /// Makes the folder. Throws Error if that fails, or for pictures in a build without OpenCV.
  MapFolder(std::filesystem::path folder, std::vector<std::string> formats);

  bool has(std::string_view format) const;
  /// Writes the map (H, W) of an input: NAME.npy, NAME.png, NAME-overlay.png, with a number after NAME where
  /// an input before had that name. `scale`: the value that has the last color. `source` may be empty unless
  /// there are overlays.
  void write(const std::string& input_name, TensorView<const float> map, double scale, const Image& source);

 private:
  std::filesystem::path folder_;
  std::vector<std::string> formats_;
  std::map<std::string, std::size_t> names_;  // and how many inputs had each
};

}  // namespace vit::app
