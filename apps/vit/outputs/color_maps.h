// Color maps by matplotlib's names: bytes to colors.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vit::app {

using Color = std::array<unsigned char, 3>;  // R, G, B
using ColorMap = std::array<Color, 256>;

/// "Spectral", "viridis", ..., each also with "_r", which reverses it. Throws UsageError with the known
/// names.
ColorMap color_map(std::string_view name);
/// The known names, without reversed ones.
std::vector<std::string> color_map_names();

/// OpenCV's color maps by matplotlib's names; none in a build without it.
inline constexpr std::string_view kOpencvColorMaps[] = {"viridis", "magma",   "inferno", "plasma",
                                                        "turbo",   "cividis", "jet"};
std::vector<std::string> opencv_color_map_names();
std::optional<ColorMap> opencv_color_map(std::string_view name);

/// The palettes of class maps: "voc" (21 classes or more, from the bits of the index) and "ade20k" (150). A
/// further class has the color of VOC's rule.
Color voc_color(std::size_t index);
Color ade20k_color(std::size_t index);
/// Of so many classes, at least one: ADE20K's for 150, else VOC's.
std::vector<Color> class_colors(std::size_t num_classes);
/// Of so many segments, at least one: VOC's without its black.
std::vector<Color> segment_colors(std::size_t num_segments);

}  // namespace vit::app
