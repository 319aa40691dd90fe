// Annotations of CVAT for images, version 1.1: https://docs.cvat.ai/docs/other/xml_format
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "apps/vit/inputs/label_shapes.h"
#include "apps/vit/inputs/xml_elements.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kCvat{"labels", ErrorKind::format};
constexpr std::size_t kEllipseCorners = 256;

/// The values of an element, with its place in messages.
class CvatElement {
 public:
  CvatElement(const XmlElement& element, const std::string& file) : element_(element), file_(file) {}

  std::string where() const { return text(file_, ", line ", element_.line, ": <", element_.name, ">"); }
  const std::string& at(std::string_view name) const {
    const std::string* const value = element_.find(name);
    VIT_CHECK(value != nullptr, kCvat, where(), " has no ", name);
    return *value;
  }
  double number(std::string_view name) const { return number_of(at(name), name); }
  double number_or(std::string_view name, double otherwise) const {
    return element_.find(name) == nullptr ? otherwise : number(name);
  }
  std::size_t count(std::string_view name) const {
    const double value = number(name);
    VIT_CHECK(value >= 0 && value <= 65536 && value == std::floor(value), kCvat, where(), ": ", name, " of ",
              in_quotes(at(name)));
    return static_cast<std::size_t>(value);
  }
  /// x0,y0;x1,y1;...
  std::vector<ShapePoint> points() const {
    std::vector<ShapePoint> out;
    for_each_part(at("points"), ';', [&](std::string_view pair) {
      const std::size_t comma = pair.find(',');
      VIT_CHECK(comma != pair.npos, kCvat, where(), ": points must be x,y;x,y;..., found ", in_quotes(pair));
      VIT_CHECK(out.size() < kMostShapePoints, kCvat, where(), ": more than ", kMostShapePoints, " points");
      out.push_back(
          {number_of(pair.substr(0, comma), "points"), number_of(pair.substr(comma + 1), "points")});
    });
    return out;
  }
  /// Runs of pixels along the rows, of others and of these in turn.
  std::vector<std::uint32_t> runs(ImageSize box) const {
    std::vector<std::uint32_t> out;
    std::size_t sum = 0;
    for_each_part(at("rle"), ',', [&](std::string_view part) {
      const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
      part.remove_prefix(first);
      std::uint32_t run = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), run);
      VIT_CHECK(error == std::errc() && end == part.data() + part.size() && run <= kMaxImagePixels, kCvat,
                where(), ": rle must be numbers with commas, found ", in_quotes(part));
      out.push_back(run);
      sum += run;
    });
    VIT_CHECK(sum == box.height * box.width, kCvat, where(), ": the runs add up to ", sum,
              " pixels, and the mask is ", box.width, " x ", box.height);
    return out;
  }

 private:
  double number_of(std::string_view digits, std::string_view name) const {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    VIT_CHECK(error == std::errc() && end == digits.data() + digits.size() &&
                  std::abs(value) <= kMostShapeCoordinate,
              kCvat, where(), ": ", name, " has ", in_quotes(digits), " in the place of a number");
    return value;
  }
  template <typename Use>
  static void for_each_part(std::string_view rest, char separator, const Use& use) {
    while (true) {
      const std::size_t end = rest.find(separator);
      use(rest.substr(0, end));
      if (end == rest.npos) return;
      rest.remove_prefix(end + 1);
    }
  }

  const XmlElement& element_;
  const std::string& file_;
};

std::vector<ShapePoint> rotated(std::vector<ShapePoint> points, ShapePoint center, double degrees) {
  if (degrees == 0) return points;
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  for (ShapePoint& p : points) {
    const double x = p.x - center.x, y = p.y - center.y;
    p = {center.x + cosine * x - sine * y, center.y + sine * x + cosine * y};
  }
  return points;
}

/// The shape of an element; nothing for one that covers no pixels, or is none.
std::optional<LabelShape> shape_of(const XmlElement& xml, const std::string& file) {
  using Form = LabelShape::Form;
  const CvatElement element(xml, file);
  LabelShape out;
  if (xml.name == "polygon" || xml.name == "polyline" || xml.name == "points") {
    out.form = xml.name == "polygon" ? Form::polygon : xml.name == "polyline" ? Form::line : Form::point;
    out.points = element.points();
  } else if (xml.name == "box") {
    const double left = element.number("xtl"), top = element.number("ytl"), right = element.number("xbr"),
                 bottom = element.number("ybr");
    out.points = rotated({{left, top}, {right, top}, {right, bottom}, {left, bottom}},
                         {(left + right) / 2, (top + bottom) / 2}, element.number_or("rotation", 0));
  } else if (xml.name == "ellipse") {
    const ShapePoint center{element.number("cx"), element.number("cy")};
    const double rx = element.number("rx"), ry = element.number("ry");
    for (std::size_t i = 0; i < kEllipseCorners; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kEllipseCorners;
      out.points.push_back({center.x + rx * std::cos(angle), center.y + ry * std::sin(angle)});
    }
    out.points = rotated(std::move(out.points), center, element.number_or("rotation", 0));
  } else if (xml.name == "mask") {
    out.form = Form::mask;
    out.box = {element.count("height"), element.count("width")};
    out.points = {{element.number("left"), element.number("top")}};
    out.runs = element.runs(out.box);
  } else {
    VIT_CHECK(xml.name != "cuboid" && xml.name != "skeleton", kCvat.with(ErrorKind::unsupported),
              element.where(), "; polygon, polyline, points, box, ellipse and mask are read");
    return std::nullopt;  // tag, attribute
  }
  out.label = element.at("label");
  return out;
}

}  // namespace

AnnotatedImages parse_cvat(std::string_view text, const std::string& file) {
  struct Placed {
    double z = 0;
    LabelShape shape;
  };
  AnnotatedImages out;
  std::vector<Placed> placed;  // of the image that is open
  bool is_root = true, is_in_image = false;
  const auto begin = [&](const XmlElement& xml) {
    const CvatElement element(xml, file);
    VIT_CHECK(!is_root || xml.name == "annotations", kCvat, file,
              ": no file of CVAT, whose root is annotations; found <", in_quotes(xml.name), ">");
    is_root = false;
    VIT_CHECK(xml.name != "track", kCvat.with(ErrorKind::unsupported), element.where(),
              " of a video; export it as CVAT for images");
    if (xml.name == "image" && !is_in_image) {
      is_in_image = true;
      out.images.push_back({.file = element.at("name"), .size = {}});
      if (xml.find("height") != nullptr && xml.find("width") != nullptr)
        out.images.back().size = {element.count("height"), element.count("width")};
      return;
    }
    if (!is_in_image) return;
    if (std::optional<LabelShape> shape = shape_of(xml, file))
      placed.push_back({element.number_or("z_order", 0), *std::move(shape)});
  };
  const auto end = [&](std::string_view name) {
    if (name != "image" || !is_in_image) return;
    is_in_image = false;
    std::ranges::stable_sort(placed, {}, &Placed::z);  // a larger one is closer to the camera
    for (Placed& of : placed) out.images.back().named.push_back(std::move(of.shape));
    placed.clear();
  };
  read_xml(text, file, {.begin = begin, .end = end});
  return out;
}

}  // namespace vit::app
