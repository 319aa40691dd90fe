// Visualizations of patch values: color maps over images, matches between two, sheets of many. Drawn with
// OpenCV by a module of the program (drawing_module.h); a build without it throws Error. Letters: h, w =
// patches per column and row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/outputs/patch_layout.h"

namespace vit::app {

/// overlay: colors over the image, interpolated between the centers of patches; plain: only colors, each
/// patch as a rectangle.
enum class DrawStyle { overlay, plain };

/// Values of the patches of one image.
struct PatchMap {
  std::string title;
  std::vector<float> values;  // (h, w), or (h, w, 3) as red, green, blue from 0 to 1
  double low = 0;             // ends of the color scale of (h, w)
  double high = 1;
  std::vector<std::uint8_t> is_shown{};  // (h, w): 0 hides a patch; empty = all are shown
};

struct MapPicture {
  const SeenImage& image;
  std::vector<PatchMap> maps;
  std::vector<std::string> caption;           // lines under the picture
  std::optional<std::size_t> marked_patch{};  // outlined: the query
};

/// A line between two images.
struct MatchLine {
  SourcePoint from;
  SourcePoint to;
};

/// Parameters of the drawing.
struct DrawOptions {
  DrawStyle style = DrawStyle::overlay;
  std::size_t max_edge = 1536;  // of one panel, in pixels
};

/// Throws Error if the program was built without OpenCV, or its module is missing.
void check_can_draw();
/// Loads the module that draws, if there is one, before a sandbox closes its folder.
void load_drawing_module();

/// A map (H, W) in the colors of matplotlib's inferno, from `low` to `high`; half transparent over the gray
/// `source` of that size unless that is null.
Image draw_colors(TensorView<const float> map, double low, double high, const Image* source);
/// The image with its maps next to it, captions and color scales.
Image draw_maps(const MapPicture& picture, const DrawOptions& options);
/// Two images side by side and lines between them.
Image draw_matches(const SeenImage& first, const SeenImage& second, std::span<const MatchLine> lines,
                   std::span<const std::string> caption, const DrawOptions& options);
/// Pictures in rows, in order, with lines of text below.
Image draw_sheet(std::span<const Image> pictures, std::span<const std::string> caption);
/// A line of text on a bar of that color over the upper left corner of a box, moved into the image if it
/// would leave it. `line`: pixels that lines of the picture are thick. Characters beyond ASCII become
/// question marks. Nothing in a build without OpenCV, whose font draws it.
void draw_text(Image& picture, const Box& box, const std::string& text, const Color& color, int line);

}  // namespace vit::app
