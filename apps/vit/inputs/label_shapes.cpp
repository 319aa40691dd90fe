#include "apps/vit/inputs/label_shapes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "apps/vit/ground/base64.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kShapes{"labels", ErrorKind::format};

/// The pixels [first, last) of an axis whose centers are in [low, high).
struct Pixels {
  std::size_t first = 0, last = 0;
};

Pixels pixels_between(double low, double high, std::size_t count) {
  const auto at = [count](double position) {
    return static_cast<std::size_t>(std::clamp(std::ceil(position - 0.5), 0.0, static_cast<double>(count)));
  };
  return {at(low), at(high)};
}

double squared_distance(const ShapePoint& at, const ShapePoint& from, const ShapePoint& to) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = dx * dx + dy * dy;
  const double t =
      length > 0 ? std::clamp(((at.x - from.x) * dx + (at.y - from.y) * dy) / length, 0.0, 1.0) : 0.0;
  const double x = at.x - from.x - t * dx, y = at.y - from.y - t * dy;
  return x * x + y * y;
}

double coordinate_of(const Json& json) {
  const double value = json.as_double();
  VIT_CHECK(std::abs(value) <= kMostShapeCoordinate, kShapes, json.where(), ": a coordinate of ", value);
  return value;
}

}  // namespace

void fill_polygon(std::span<const ShapePoint> corners, std::int64_t value, TensorView<std::int64_t> map) {
  double top = kMostShapeCoordinate, bottom = -kMostShapeCoordinate;
  for (const ShapePoint& corner : corners) {
    top = std::min(top, corner.y);
    bottom = std::max(bottom, corner.y);
  }
  if (top > bottom) return;
  const Pixels rows = pixels_between(top, bottom, map.dim(0));
  std::vector<double> crossings;
  for (std::size_t y = rows.first; y < rows.last; ++y) {
    const double at = static_cast<double>(y) + 0.5;
    crossings.clear();
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const ShapePoint &a = corners[i], &b = corners[(i + 1) % corners.size()];
      if ((a.y <= at) == (b.y <= at)) continue;
      crossings.push_back(a.x + (at - a.y) / (b.y - a.y) * (b.x - a.x));
    }
    std::ranges::sort(crossings);
    for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
      const Pixels inside = pixels_between(crossings[i], crossings[i + 1], map.dim(1));
      for (std::size_t x = inside.first; x < inside.last; ++x) map.row(y)[x] = value;
    }
  }
}

void draw_line(std::span<const ShapePoint> points, double radius, std::int64_t value,
               TensorView<std::int64_t> map) {
  // centers of the pixels that a line crosses are at most half a diagonal from it; half a pixel keeps it thin
  const double reach = std::max(radius, 0.5);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ShapePoint &from = points[i], &to = points[std::min(i + 1, points.size() - 1)];
    const Pixels rows =
        pixels_between(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach + 1e-9, map.dim(0));
    const Pixels columns =
        pixels_between(std::min(from.x, to.x) - reach, std::max(from.x, to.x) + reach + 1e-9, map.dim(1));
    for (std::size_t y = rows.first; y < rows.last; ++y) {
      for (std::size_t x = columns.first; x < columns.last; ++x) {
        const ShapePoint center{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
        if (squared_distance(center, from, to) <= reach * reach) map.row(y)[x] = value;
      }
    }
  }
  for (const ShapePoint& point : points) {
    if (point.x >= 0 && point.y >= 0 && point.x < static_cast<double>(map.dim(1)) &&
        point.y < static_cast<double>(map.dim(0)))
      map.row(static_cast<std::size_t>(point.y))[static_cast<std::size_t>(point.x)] = value;
  }
}

namespace {

/// Runs along the rows of a box.
void fill_box_runs(const LabelShape& shape, std::int64_t value, TensorView<std::int64_t> map) {
  const auto left = static_cast<std::ptrdiff_t>(std::floor(shape.points.front().x)),
             top = static_cast<std::ptrdiff_t>(std::floor(shape.points.front().y));
  const auto width = static_cast<std::ptrdiff_t>(shape.box.width);
  const auto is_inside = [](std::ptrdiff_t at, std::size_t count) {
    return at >= 0 && at < static_cast<std::ptrdiff_t>(count);
  };
  std::ptrdiff_t at = 0;
  for (std::size_t i = 0; i < shape.runs.size(); ++i) {
    const std::ptrdiff_t end = at + static_cast<std::ptrdiff_t>(shape.runs[i]);
    for (; i % 2 == 1 && at < end; ++at) {
      const std::ptrdiff_t y = top + at / width, x = left + at % width;
      if (is_inside(y, map.dim(0)) && is_inside(x, map.dim(1)))
        map.row(static_cast<std::size_t>(y))[x] = value;
    }
    at = end;
  }
}

}  // namespace

void fill_runs(std::span<const std::uint32_t> runs, std::int64_t value, TensorView<std::int64_t> map) {
  const std::size_t height = map.dim(0), count = map.num_elements();
  std::size_t at = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t end = std::min(at + runs[i], count);
    for (; at < end; ++at) {
      if (i % 2 == 1) map.row(at % height)[at / height] = value;
    }
  }
}

std::vector<std::uint32_t> parse_runs(std::string_view letters, const std::string& where) {
  // Five bits a letter, the lowest first, the sixth says that more follow; from the third run on as the
  // difference to the run two before. Source: pycocotools, maskApi.c.
  std::vector<std::uint32_t> runs;
  for (std::size_t i = 0; i < letters.size();) {
    std::int64_t value = 0;
    for (int shift = 0;; shift += 5) {
      VIT_CHECK(i < letters.size() && shift < 35, kShapes, where,
                ": these run lengths are cut off or damaged");
      const int letter = letters[i++] - 48;
      VIT_CHECK(letter >= 0 && letter < 64, kShapes, where,
                ": no letter of run lengths: ", in_quotes(letters.substr(i - 1, 1)));
      value |= static_cast<std::int64_t>(letter & 0x1f) << shift;
      if ((letter & 0x20) != 0) continue;
      if ((letter & 0x10) != 0) value |= -(std::int64_t{1} << (shift + 5));
      break;
    }
    if (runs.size() > 2) value += runs[runs.size() - 2];
    VIT_CHECK(value >= 0 && value <= static_cast<std::int64_t>(kMaxImagePixels), kShapes, where,
              ": a run of ", value, " pixels");
    runs.push_back(static_cast<std::uint32_t>(value));
  }
  return runs;
}

// ----------------------------------------------------------------------------------------------------- COCO

namespace {

ImageSize size_of(const Json& image, std::string_view height, std::string_view width) {
  constexpr SizeRange kEdge{.max = 1u << 16};
  return {image.find_size(height, kEdge).value_or(0), image.find_size(width, kEdge).value_or(0)};
}

std::vector<ShapePoint> polygon_of(const Json& numbers) {
  numbers.expect(Json::Kind::array);
  VIT_CHECK(numbers.size() % 2 == 0 && numbers.size() <= 2 * kMostShapePoints, kShapes, numbers.where(),
            " must be x0, y0, x1, y1, ...; found ", numbers.size(), " numbers");
  std::vector<ShapePoint> out;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
    out.push_back({coordinate_of(numbers[i]), coordinate_of(numbers[i + 1])});
  return out;
}

CocoShape coco_shape(const Json& annotation) {
  CocoShape out{.category = annotation.at("category_id").as_integer()};
  VIT_CHECK(out.category >= 0, kShapes, annotation.where(), ": category ", out.category);
  const Json segmentation = annotation.at("segmentation");
  if (segmentation.is_array()) {
    for (std::size_t i = 0; i < segmentation.size(); ++i) out.polygons.push_back(polygon_of(segmentation[i]));
    return out;
  }
  const Json size = segmentation.at("size"), counts = segmentation.at("counts");
  size.expect_array(2, "[height, width]");
  constexpr SizeRange kEdge{.min = 1, .max = 1u << 16};
  out.size = {size[0].as_size(kEdge), size[1].as_size(kEdge)};
  if (counts.is_string()) {
    out.runs = parse_runs(counts.as_string(), counts.where());
  } else {
    counts.expect(Json::Kind::array);
    for (std::size_t i = 0; i < counts.size(); ++i)
      out.runs.push_back(static_cast<std::uint32_t>(counts[i].as_size({.max = kMaxImagePixels})));
  }
  std::size_t sum = 0;
  for (const std::uint32_t run : out.runs) sum += run;
  VIT_CHECK(sum == out.size.height * out.size.width, kShapes, counts.where(), ": the runs add up to ", sum,
            " pixels, and the size is ", out.size.height, " x ", out.size.width);
  return out;
}

}  // namespace

AnnotatedImages parse_coco(const Json& json) {
  AnnotatedImages out;
  VIT_CHECK(json.is_object() && json.find("images") && json.find("annotations"), kShapes, json.where(),
            ": no COCO file, which is an object with images, annotations and categories");
  std::map<std::int64_t, std::size_t> places;
  const Json images = json.at("images"), annotations = json.at("annotations");
  for (std::size_t i = 0; i < images.size(); ++i) {
    places[images[i].at("id").as_integer()] = out.images.size();
    out.images.push_back({.file = std::string(images[i].at("file_name").as_string()),
                          .size = size_of(images[i], "height", "width")});
  }
  const auto categories = json.find("categories");
  for (std::size_t i = 0; categories && i < categories->size(); ++i) {
    const Json category = (*categories)[i];
    out.categories[category.at("id").as_integer()] = category.at("name").as_string();
  }
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const Json annotation = annotations[i];
    const auto place = places.find(annotation.at("image_id").as_integer());
    VIT_CHECK(place != places.end(), kShapes, annotation.where(), ": image ",
              annotation.at("image_id").as_integer(), " is none of the images");
    if (!annotation.find("segmentation")) continue;  // a box or keypoints
    out.images[place->second].shapes.push_back(coco_shape(annotation));
  }
  return out;
}

// -------------------------------------------------------------------------------------------------- LabelMe

namespace {

/// A mask is a PNG in base64, whose upper left and lower right pixels are the two points.
void read_labelme_mask(const Json& mask, LabelShape& shape) {
  const std::optional<std::string> file = decode_base64(mask.as_string());
  VIT_CHECK(file && file->starts_with("\x89PNG"), kShapes, mask.where(), ": no PNG in base64");
  const ShapePoint first{std::min(shape.points[0].x, shape.points[1].x),
                         std::min(shape.points[0].y, shape.points[1].y)};
  const double width = std::abs(shape.points[1].x - shape.points[0].x),
               height = std::abs(shape.points[1].y - shape.points[0].y);
  constexpr double kMostPixels = 1 << 16;
  VIT_CHECK(width < kMostPixels && height < kMostPixels, kShapes, mask.where(), ": a mask of ", width, " x ",
            height);
  const auto most = static_cast<std::size_t>((width + 2) * (height + 2));
  const Image image = decode_bytes(std::as_bytes(std::span(*file)), {.max_pixels = most}, mask.where());
  const auto is_near = [](std::size_t edge, double stated) {  // some write the pixel after the last one
    return std::abs(static_cast<double>(edge) - 1 - stated) <= 1;
  };
  VIT_CHECK(is_near(image.width(), width) && is_near(image.height(), height), kShapes, mask.where(),
            ": a mask of ", image.width(), " x ", image.height(), " pixels between points that are ", width,
            " x ", height, " apart");
  shape.points = {first};
  shape.box = image.size();
  bool is_inside = false;
  shape.runs.push_back(0);
  for (std::size_t y = 0; y < image.height(); ++y) {
    for (std::size_t x = 0; x < image.width(); ++x) {
      if ((image.row(y)[3 * x] != 0) != is_inside) {
        is_inside = !is_inside;
        shape.runs.push_back(0);
      }
      ++shape.runs.back();
    }
  }
}

LabelShape labelme_shape(const Json& json) {
  using Form = LabelShape::Form;
  struct Known {
    std::string_view name;
    Form form;
    std::size_t least, most;  // points
  };
  constexpr Known kKnown[]{{"polygon", Form::polygon, 3, kMostShapePoints},
                           {"rectangle", Form::rectangle, 2, 2},
                           {"circle", Form::circle, 2, 2},
                           {"line", Form::line, 2, kMostShapePoints},
                           {"linestrip", Form::line, 1, kMostShapePoints},
                           {"points", Form::point, 1, kMostShapePoints},
                           {"point", Form::point, 1, 1},
                           {"oriented_rectangle", Form::polygon, 4, 4},
                           {"mask", Form::mask, 2, 2}};
  const std::string name = json.find_string("shape_type").value_or("polygon");
  const auto known = std::ranges::find(kKnown, name, &Known::name);
  VIT_CHECK(known != std::end(kKnown), kShapes.with(ErrorKind::unsupported), json.where(), ": shape_type ",
            in_quotes(name),
            "; polygon, rectangle, oriented_rectangle, circle, line, linestrip, point and mask are read");
  LabelShape out{.form = known->form, .label = std::string(json.at("label").as_string())};
  const Json points = json.at("points");
  points.expect(Json::Kind::array);
  VIT_CHECK(points.size() >= known->least && points.size() <= known->most, kShapes, points.where(), ": ",
            points.size(), " points of a ", name);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].expect_array(2, "[x, y]");
    out.points.push_back({coordinate_of(points[i][0]), coordinate_of(points[i][1])});
  }
  if (out.form == Form::mask) read_labelme_mask(json.at("mask"), out);
  return out;
}

}  // namespace

LabelmeFile parse_labelme(const Json& json) {
  VIT_CHECK(json.is_object() && json.find("shapes"), kShapes, json.where(),
            ": no LabelMe file, which is an object with shapes");
  LabelmeFile out{.size = size_of(json, "imageHeight", "imageWidth"), .shapes = {}};
  const Json shapes = json.at("shapes");
  shapes.expect(Json::Kind::array);
  for (std::size_t i = 0; i < shapes.size(); ++i) out.shapes.push_back(labelme_shape(shapes[i]));
  return out;
}

void fill_shape(const LabelShape& shape, std::int64_t value, TensorView<std::int64_t> map) {
  using Form = LabelShape::Form;
  const std::vector<ShapePoint>& p = shape.points;
  switch (shape.form) {
    case Form::polygon: return fill_polygon(p, value, map);
    case Form::rectangle: {
      const ShapePoint corners[]{p[0], {p[1].x, p[0].y}, p[1], {p[0].x, p[1].y}};
      return fill_polygon(corners, value, map);
    }
    case Form::circle:  // the center, and a point of the edge
      return draw_line(std::span(p).first(1), std::hypot(p[1].x - p[0].x, p[1].y - p[0].y), value, map);
    case Form::line: return draw_line(p, 0.5, value, map);
    case Form::mask: return fill_box_runs(shape, value, map);
    case Form::point:
      for (const ShapePoint& point : p) draw_line({&point, 1}, 0.5, value, map);
  }
}

}  // namespace vit::app
