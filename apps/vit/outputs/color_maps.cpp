#include "apps/vit/outputs/color_maps.h"

#include <algorithm>
#include <optional>

#include "apps/vit/ground/usage_error.h"

namespace vit::app {
namespace {

/// ColorBrewer's diverging map of eleven colors, which matplotlib interpolates.
constexpr Color kSpectral[] = {{158, 1, 66},    {213, 62, 79},   {244, 109, 67},  {253, 174, 97},
                               {254, 224, 139}, {255, 255, 191}, {230, 245, 152}, {171, 221, 164},
                               {102, 194, 165}, {50, 136, 189},  {94, 79, 162}};

ColorMap spectral() {
  ColorMap out;
  constexpr double kSegments = 10.0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double at = static_cast<double>(i) / 255.0 * kSegments;
    const auto low = std::min<std::size_t>(static_cast<std::size_t>(at), 9);
    const double t = at - static_cast<double>(low);
    for (std::size_t c = 0; c < 3; ++c) {
      const double value = kSpectral[low][c] * (1.0 - t) + kSpectral[low + 1][c] * t;
      out[i][c] = static_cast<unsigned char>(value + 1e-9);  // matplotlib truncates
    }
  }
  return out;
}

ColorMap gray() {
  ColorMap out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i].fill(static_cast<unsigned char>(i));
  return out;
}

}  // namespace

std::vector<std::string> color_map_names() {
  std::vector<std::string> names{"Spectral", "gray"};
  for (const std::string& name : opencv_color_map_names()) names.push_back(name);
  return names;
}

ColorMap color_map(std::string_view name) {
  const bool reversed = name.ends_with("_r");
  const std::string_view plain = reversed ? name.substr(0, name.size() - 2) : name;
  std::optional<ColorMap> map;
  if (plain == "Spectral") map = spectral();
  if (plain == "gray") map = gray();
  if (!map) map = opencv_color_map(plain);
  if (!map) {
    std::string known;
    for (const std::string& one : color_map_names()) known += (known.empty() ? "" : ", ") + one;
    fail_usage("--colormap: expected one of ", known, ", or one of them with _r, found '", std::string(name),
               "'");
  }
  if (reversed) std::reverse(map->begin(), map->end());
  return *map;
}

}  // namespace vit::app
