// Labels of pixels: shapes and run lengths against their definitions, and files that are no labels.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/inputs/label_shapes.h"
#include "apps/vit/inputs/pixel_labels.h"
#include "tests/apps/pixel_files.h"
#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

TEST_SUITE_BEGIN("fit");

using namespace vit;
using namespace vit::app;
using namespace vit::internal;
using namespace vit::test;

namespace {

using Map = Tensor<std::int64_t>;

Map empty_map(std::size_t height, std::size_t width) {
  Map map(Shape{height, width});
  std::ranges::fill(map.flat(), kUnlabeled);
  return map;
}

/// Rows of a map as text: a digit, or "." for none.
std::vector<std::string> drawn(const Map& map) {
  std::vector<std::string> out;
  for (std::size_t y = 0; y < map.dim(0); ++y) {
    out.emplace_back();
    for (std::size_t x = 0; x < map.dim(1); ++x) {
      const std::int64_t value = map.view().row(y)[x];
      out.back() += value == kUnlabeled ? '.' : static_cast<char>('0' + value);
    }
  }
  return out;
}

using Rows = std::vector<std::string>;

PixelLabels read(const TestFolder& folder, const std::string& truth, const std::string& name,
                 std::vector<std::size_t> unlabeled = {}) {
  LabelFiles files(truth, std::move(unlabeled));
  const Input input{.name = folder / (name + ".jpg"), .path = folder / (name + ".jpg"), .pixels = nullptr};
  const auto labels = files.read(input, name, ImageSize{4, 6});
  REQUIRE(labels);
  PixelLabels out{.kind = labels->kind, .file = labels->file, .values = Map(labels->values.shape())};
  std::ranges::copy(labels->values.flat(), out.values.data());
  out.found = labels->found;
  return out;
}

std::string failure(const TestFolder& folder, const std::string& truth, const std::string& name) {
  return message_of([&] { read(folder, truth, name); });
}

std::string labelme_failure(const std::string& text) {
  return message_of([&] { parse_labelme(parse_json(text, "a.json")); });
}
std::string coco_failure(const std::string& text) {
  return message_of([&] { parse_coco(parse_json(text, "all.json")); });
}

}  // namespace

TEST_CASE("labels: pixels of a polygon are those whose centers are inside") {
  Map map = empty_map(5, 6);
  const ShapePoint square[]{{1, 1}, {4, 1}, {4, 3}, {1, 3}};
  fill_polygon(square, 1, map);
  CHECK(drawn(map) == Rows{"......", ".111..", ".111..", "......", "......"});
  map = empty_map(5, 6);
  const ShapePoint triangle[]{{0, 0}, {5, 0}, {0, 5}};  // centers on its edge count on the left one
  fill_polygon(triangle, 2, map);
  CHECK(drawn(map) == Rows{"2222..", "222...", "22....", "2.....", "......"});
  map = empty_map(3, 3);
  const ShapePoint beyond[]{{-9, -9}, {99, -9}, {99, 99}, {-9, 99}};
  fill_polygon(beyond, 3, map);
  CHECK(drawn(map) == Rows{"333", "333", "333"});
  const ShapePoint line[]{{1, 1}};
  fill_polygon(line, 4, map);
  CHECK(drawn(map) == Rows{"333", "333", "333"});
}

TEST_CASE("labels: lines and circles") {
  Map map = empty_map(5, 6);
  const ShapePoint line[]{{0.5, 1.5}, {4.5, 1.5}};
  draw_line(line, 0.5, 1, map);
  CHECK(drawn(map)[1] == "11111.");
  map = empty_map(5, 5);
  fill_shape({.form = LabelShape::Form::circle, .label = "a", .points = {{2.5, 2.5}, {2.5, 4.5}}}, 1, map);
  CHECK(drawn(map) == Rows{"..1..", ".111.", "11111", ".111.", "..1.."});
  map = empty_map(2, 3);
  fill_shape({.form = LabelShape::Form::point, .label = "a", .points = {{2.2, 0.9}}}, 1, map);
  CHECK(drawn(map)[0][2] == '1');
}

TEST_CASE("labels: run lengths go down the columns, as numbers and as letters") {
  Map map = empty_map(2, 3);
  const std::uint32_t runs[]{1, 2, 2, 1};
  fill_runs(runs, 7, map);
  CHECK(drawn(map) == Rows{".7.", "7.7"});
  // of the same map; the last is stored as its difference to the second, -1
  CHECK(parse_runs("122O", "here") == std::vector<std::uint32_t>{1, 2, 2, 1});
  CHECK(contains(message_of([] { parse_runs("\x7f", "here"); }), "here"));
  CHECK(contains(message_of([] { parse_runs("PPPP", "here"); }), "cut off"));
  CHECK(contains(message_of([] { parse_runs("P", "here"); }), "cut off"));
}

TEST_CASE("labels: PNG files of indices and of strokes") {
  const TestFolder folder;
  write_gray(folder / "truth/a.png", {"0017", "0.17"}, 255);
  PixelLabels labels = read(folder, folder / "truth", "a");
  CHECK(labels.kind == LabelKind::indices);
  CHECK(drawn(labels.values) == Rows{"0017", "0.17"});
  CHECK(labels.found == std::vector<std::int64_t>{0, 1, 7});
  CHECK(drawn(read(folder, folder / "truth", "a", {0}).values) == Rows{"..17", "..17"});

  write_palette(folder / "truth/b.png", {"0120"}, {{0, 0, 0}, {255, 0, 0}, {0, 255, 0}});
  CHECK(drawn(read(folder, folder / "truth", "b").values) == Rows{"0120"});
  write_palette(folder / "truth/c.png", {"0120"}, {{0, 0, 0}, {255, 0, 0}, {255, 0, 0}});
  CHECK(contains(failure(folder, folder / "truth", "c"), "classes 1 and 2 have the same color"));

  write_strokes(folder / "truth/d.png", {".rb.", "rr.."});
  labels = read(folder, folder / "truth", "d");
  CHECK(labels.kind == LabelKind::colors);
  CHECK(labels.found == std::vector<std::int64_t>{0xff0000, 0x0000ff});
  write_strokes(folder / "truth/e.png", {"rR"});  // #ff0000 and #fe0000
  CHECK(contains(failure(folder, folder / "truth", "e"), "#ff0000 and #fe0000"));
  write_rgb(folder / "truth/f.png", {"rb"});
  CHECK(contains(failure(folder, folder / "truth", "f"), "without transparency"));
  folder.write("truth/g.png", "not a PNG");
  CHECK(contains(failure(folder, folder / "truth", "g"), "no readable PNG"));
}

TEST_CASE("labels: shapes of LabelMe") {
  const TestFolder folder;
  folder.write("truth/a.json",
               R"({"imageHeight": 4, "imageWidth": 6, "shapes": [
                   {"label": "leaf", "points": [[0, 0], [3, 0], [3, 2], [0, 2]], "shape_type": "polygon"},
                   {"label": "bug", "points": [[2, 1], [5, 4]], "shape_type": "rectangle"}]})");
  CHECK(drawn(read(folder, folder / "truth", "a").values) == Rows{"000...", "00111.", "..111.", "..111."});
  CHECK(contains(labelme_failure("[]"), "no LabelMe file"));
  CHECK(contains(labelme_failure("{\"shapes\": 3}"), "shapes"));
  CHECK(contains(
      labelme_failure(R"({"shapes": [{"label": "a", "points": [[0, 0]], "shape_type": "polygon"}]})"),
      "1 points of a polygon"));
  CHECK(contains(
      labelme_failure(R"({"shapes": [{"label": "a", "points": [[0, 1e9]], "shape_type": "point"}]})"),
      "1e+09"));
  CHECK(contains(labelme_failure(R"({"shapes": [{"label": "a", "points": [[0, 1]], "shape_type": "cube"}]})"),
                 "point and mask are read"));
  CHECK(contains(labelme_failure(R"({"shapes": [{"points": [[0, 1]], "shape_type": "point"}]})"), "label"));
  CHECK(contains(labelme_failure(R"({"imageHeight": 99999999, "shapes": []})"), "imageHeight"));
}

TEST_CASE("labels: polygons and run lengths of COCO, by the name of the image") {
  const TestFolder folder;
  folder.write("all.json", R"({"images": [{"id": 5, "file_name": "sub/a.jpg", "height": 4, "width": 6},
                                          {"id": 6, "file_name": "b.jpg", "height": 4, "width": 6}],
      "categories": [{"id": 2, "name": "cell"}, {"id": 1, "name": "ground"}],
      "annotations": [{"image_id": 5, "category_id": 1, "segmentation": [[0, 0, 6, 0, 6, 2, 0, 2]]},
                      {"image_id": 5, "category_id": 2, "segmentation": {"size": [4, 6], "counts": [2, 3, 19]}},
                      {"image_id": 6, "category_id": 2, "bbox": [0, 0, 1, 1]}]})");
  LabelFiles files(folder / "all.json", {});
  const Input input{.name = folder / "sub/a.jpg", .path = folder / "sub/a.jpg", .pixels = nullptr};
  const auto labels = files.read(input, "a", ImageSize{4, 6});
  REQUIRE(labels);
  CHECK(drawn(labels->values) == Rows{"121111", "111111", "2.....", "2....."});
  CHECK(files.name_of(LabelKind::coco, 2) == "cell");
  const Input none{.name = folder / "b.jpg", .path = folder / "b.jpg", .pixels = nullptr};
  CHECK(!files.read(none, "b", std::nullopt));
  CHECK(contains(coco_failure("{}"), "no COCO file"));
  CHECK(contains(coco_failure(R"({"images": [], "annotations": [{"image_id": 1, "category_id": 1}]})"),
                 "none of the images"));
  const auto with = [](const std::string& segmentation) {
    return R"({"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"image_id": 1, "category_id": 1,
              "segmentation": )" +
           segmentation + "}]}";
  };
  CHECK(contains(coco_failure(with("[[1, 2, 3]]")), "x0, y0"));
  CHECK(contains(coco_failure(with(R"({"size": [4, 6], "counts": [1, 2]})")), "add up to 3 pixels"));
  CHECK(contains(coco_failure(with(R"({"size": [4], "counts": [1, 2]})")), "[height, width]"));
}

TEST_CASE("labels: classes are ordered by index and by name, and all files of one kind") {
  const TestFolder folder;
  folder.write("truth/a.json", R"({"imageHeight": 2, "imageWidth": 2, "shapes": [
      {"label": "z", "points": [[0, 0]], "shape_type": "point"},
      {"label": "b", "points": [[1, 1]], "shape_type": "point"}]})");
  LabelFiles files(folder / "truth", {});
  const Input input{.name = "a.jpg", .path = "a.jpg", .pixels = nullptr};
  const auto labels = files.read(input, "a", ImageSize{2, 2});
  LabelClasses classes;
  classes.add(*labels);
  classes.sort(files);
  REQUIRE(classes.size() == 2);
  CHECK(files.name_of(classes.kind(), classes.values()[0]) == "b");
  write_strokes(folder / "truth/b.png", {"rb"});
  const Input other{.name = "b.jpg", .path = "b.jpg", .pixels = nullptr};
  CHECK(contains(message_of([&] { classes.add(*files.read(other, "b", std::nullopt)); }), "one kind"));
}

TEST_CASE("labels: masks of LabelMe are images in base64") {
  const TestFolder folder;
  write_gray(folder / "mask.png", {"0110", "1001"}, 255);
  const std::string mask = encode_base64(read_text(folder / "mask.png"));
  const auto shape = [&](const std::string& points, const std::string& png) {
    return R"({"shapes": [{"label": "a", "shape_type": "mask", "points": )" + points + R"(, "mask": ")" +
           png + "\"}]}";
  };
  folder.write("a.json", shape("[[1, 2], [4, 3]]", mask));
  CHECK(drawn(read(folder, folder.path(), "a").values) == Rows{"......", "......", "..00..", ".0..0."});
  folder.write("a.json", shape("[[4, 3], [8, 5]]", mask));  // the pixel after the last one, beyond the image
  CHECK(drawn(read(folder, folder.path(), "a").values) == Rows{"......", "......", "......", ".....0"});
  CHECK(contains(labelme_failure(shape("[[1, 2], [40, 3]]", mask)), "4 x 2 pixels between points"));
  CHECK(contains(labelme_failure(shape("[[1, 2], [1e6, 1e6]]", mask)), "a mask of"));
  CHECK(contains(labelme_failure(shape("[[1, 2], [4, 3]]", "AAAA")), "no PNG in base64"));
  CHECK(contains(labelme_failure(shape("[[1, 2], [4, 3]]", mask.substr(0, 48))), "mask"));
  CHECK(contains(labelme_failure(shape("[[1, 2]]", mask)), "1 points of a mask"));
  CHECK(contains(
      labelme_failure(R"({"shapes": [{"label": "a", "shape_type": "mask", "points": [[0, 0], [1, 1]]}]})"),
      "mask"));
}

namespace {

/// A file of CVAT with these elements in the image a.jpg.
std::string cvat(const std::string& shapes) {
  return R"(<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><name>a &amp; b</name></task></meta>
<!-- <image id="9" name="none"> -->
<image id="0" name="set/a.jpg" width="6" height="4">)" +
         shapes + "</image></annotations>\n";
}
std::string cvat_failure(const std::string& text) {
  return message_of([&] { parse_cvat(text, "all.xml"); });
}

}  // namespace

TEST_CASE("labels: shapes of CVAT, those in front over the others") {
  const TestFolder folder;
  const auto rows = [&](const std::string& shapes) {
    const std::string file = folder.write("all.xml", cvat(shapes)).string();
    const PixelLabels labels = read(folder, file, "a");
    CHECK(labels.kind == LabelKind::cvat);
    return drawn(labels.values);
  };
  CHECK(rows(R"(<polygon label="a" points="1.00,1.00;4.00,1.00;4.00,3.00;1.00,3.00" occluded="0" z_order="1"/>
                <box label="b" xtl="0" ytl="0" xbr="6" ybr="2" z_order="0"><attribute name="c">x</attribute></box>)") ==
        Rows{"000000", "011100", ".111..", "......"});  // numbered in the order in which they are drawn
  CHECK(
      rows(
          R"(<mask label="a" source="manual" rle="1, 2, 3, 2" left="2" top="1" width="4" height="2" z_order="0"></mask>
                <tag label="good" source="manual"></tag>)") == Rows{"......", "...00.", "....00", "......"});
  CHECK(
      rows(R"(<polyline label="a" points="0.5,1.5;4.5,1.5"/><points label="b" points="5.5,3.5;0.5,3.5"/>)") ==
      Rows{"......", "00000.", "......", "1....1"});
  CHECK(rows(R"(<ellipse label="a" cx="3" cy="2" rx="2.2" ry="1.2"/>)") ==
        Rows{"......", ".0000.", ".0000.", "......"});
  CHECK(rows(R"(<box label="a" xtl="2" ytl="0" xbr="4" ybr="4" rotation="90"/>)") ==
        Rows{"......", ".0000.", ".0000.", "......"});
  LabelFiles files(
      folder.write("all.xml", cvat(R"(<box label="z &lt;&#233;&#x1F600;" xtl="0" ytl="0" xbr="1" ybr="1"/>
                                                   <box label="y" xtl="1" ytl="0" xbr="2" ybr="1"/>)")),
      {});
  const Input input{.name = "set/a.jpg", .path = "set/a.jpg", .pixels = nullptr};
  LabelClasses classes;
  classes.add(*files.read(input, "a", std::nullopt));
  classes.sort(files);
  REQUIRE(classes.size() == 2);
  CHECK(files.name_of(classes.kind(), classes.values()[0]) == "y");
  CHECK(files.name_of(classes.kind(), classes.values()[1]) == "z <\u00e9\U0001F600");
  const Input other{.name = "b.jpg", .path = "b.jpg", .pixels = nullptr};
  CHECK_FALSE(files.read(other, "b", std::nullopt));
}

TEST_CASE("labels: what is no file of CVAT is named") {
  const std::string box = R"(<box label="a" xtl="0" ytl="0" xbr="1" ybr="1"/>)";
  CHECK(cvat_failure(cvat(box)).empty());
  const std::pair<std::string, std::string> cases[]{
      {"", "no element"},
      {"{}", "no element"},
      {"<svg></svg>", "root is annotations"},
      {"<annotations>", "line 1: is cut off in <annotations>"},
      {cvat(box).substr(0, 200), "is cut off"},
      {"<annotations></annotation>", "</annotation> without its <annotation>"},
      {"<annotations/><annotations/>", "a second root"},
      {"<!DOCTYPE a [<!ENTITY b \"c\">]><annotations/>", "document type"},
      {R"(<?xml version="1.0" encoding="utf-16"?><annotations/>)", "UTF-8 is read"},
      {"<annotations><image id=\"0\"/></annotations>", "<image> has no name"},
      {"<annotations><track id=\"0\" label=\"a\"/></annotations>", "export it as CVAT for images"},
      {"<annotations a='1' a='2'/>", "a occurs twice"},
      {"<annotations a=1/>", "not in quotes"},
      {"<annotations a='&bomb;'/>", "no such entity"},
      {"<annotations a='&#xD800;'/>", "no such entity"},
      {"<annotations a='&#99999999999;'/>", "no such entity"},
      {"<annotations a='& '/>", "without ;"},
      {"<annotations a='1'b='2'/>", "no space before"},
      {cvat(R"(<box xtl="0" ytl="0" xbr="1" ybr="1"/>)"), "line 4: <box> has no label"},
      {cvat(R"(<box label="a" xtl="x" ytl="0" xbr="1" ybr="1"/>)"), "in the place of a number"},
      {cvat(R"(<box label="a" xtl="1e9" ytl="0" xbr="1" ybr="1"/>)"), "in the place of a number"},
      {cvat(R"(<box label="a" xtl="nan" ytl="0" xbr="1" ybr="1"/>)"), "in the place of a number"},
      {cvat(R"(<polygon label="a" points="1,2;3"/>)"), "points must be"},
      {cvat(R"(<polygon label="a" points=""/>)"), "points must be"},
      {cvat(R"(<cuboid label="a"/>)"), "mask are read"},
      {cvat(R"(<mask label="a" rle="1,2" left="0" top="0" width="2" height="2"/>)"), "add up to 3"},
      {cvat(R"(<mask label="a" rle="1,x" left="0" top="0" width="2" height="2"/>)"), "numbers with commas"},
      {cvat(R"(<mask label="a" rle="4" left="0" top="0" width="-2" height="2"/>)"), "width of"},
      {cvat(R"(<mask label="a" rle="4294967295,1" left="0" top="0" width="1" height="1"/>)"),
       "numbers with commas"}};
  for (const auto& wrong : cases) {
    CAPTURE(wrong.first);
    CHECK(contains(cvat_failure(wrong.first), wrong.second));
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "<annotations>";
  CHECK(contains(cvat_failure(deep), "nested more than 100 deep"));
  const TestFolder folder;
  CHECK(contains(failure(folder, folder.write("a.txt", "x").string(), "a"), "one of CVAT for images"));
}

TEST_SUITE_END();
