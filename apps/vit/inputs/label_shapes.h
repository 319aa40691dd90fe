// Shapes with labels: annotations of COCO, LabelMe and CVAT, and the pixels that they cover. Letters: H, W =
// height and width of the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/io/json.h"

namespace vit::app {

inline constexpr std::size_t kMostShapePoints = 1 << 16;
inline constexpr double kMostShapeCoordinate = 1e6;

/// A corner in pixels from the upper left corner of the image; the center of its first pixel is (0.5, 0.5).
struct ShapePoint {
  double x = 0, y = 0;
};

/// Gives `value` to the pixels of map (H, W) whose centers are inside of a polygon (even-odd rule).
void fill_polygon(std::span<const ShapePoint> corners, std::int64_t value, TensorView<std::int64_t> map);
/// ... to those whose centers are at most `radius` from a line through the points, at least the pixels on it.
void draw_line(std::span<const ShapePoint> points, double radius, std::int64_t value,
               TensorView<std::int64_t> map);
/// ... to those of alternating runs of others and of these, down the columns.
void fill_runs(std::span<const std::uint32_t> runs, std::int64_t value, TensorView<std::int64_t> map);

/// A shape with a name, of LabelMe and CVAT.
struct LabelShape {
  enum class Form { polygon, rectangle, circle, line, point, mask };
  Form form = Form::polygon;
  std::string label{};
  std::vector<ShapePoint> points{};   // of a mask: its upper left corner
  std::vector<std::uint32_t> runs{};  // of a mask, along its rows: of others and of these in turn
  ImageSize box{};                    // of a mask
};
/// Gives `value` to the pixels of a shape.
void fill_shape(const LabelShape& shape, std::int64_t value, TensorView<std::int64_t> map);

/// What covers the pixels of a category of COCO: polygons, or runs.
struct CocoShape {
  std::int64_t category = 0;
  std::vector<std::vector<ShapePoint>> polygons{};
  std::vector<std::uint32_t> runs{};
  ImageSize size{};  // of runs
};

/// Annotations of a file of COCO or CVAT, by image.
struct AnnotatedImages {
  struct Image {
    std::string file;
    ImageSize size{};                 // zeros if it is not stated
    std::vector<CocoShape> shapes{};  // of COCO
    std::vector<LabelShape> named{};  // of CVAT, those in front last
  };
  std::vector<Image> images{};
  std::map<std::int64_t, std::string> categories{};  // of COCO
};

/// Throw Error with the place of what is wrong.
AnnotatedImages parse_coco(const internal::Json& json);
AnnotatedImages parse_cvat(std::string_view text, const std::string& file);
/// The runs of COCO's compressed form.
std::vector<std::uint32_t> parse_runs(std::string_view letters, const std::string& where);

struct LabelmeFile {
  ImageSize size{};  // zeros if it is not stated
  std::vector<LabelShape> shapes{};
};
/// Throws Error with the place of what is wrong.
LabelmeFile parse_labelme(const internal::Json& json);

}  // namespace vit::app
