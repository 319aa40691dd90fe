// Labels of pixels: shapes and run lengths against their definitions, and files that are no labels.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/vit/inputs/label_shapes.h"
#include "apps/vit/inputs/pixel_labels.h"
#include "tests/apps/pixel_files.h"
#include "tests/apps/program.h"
#include "tests/support/errors.h"

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
  fill_shape({.form = LabelmeShape::Form::circle, .label = "a", .points = {{2.5, 2.5}, {2.5, 4.5}}}, 1, map);
  CHECK(drawn(map) == Rows{"..1..", ".111.", "11111", ".111.", "..1.."});
  map = empty_map(2, 3);
  fill_shape({.form = LabelmeShape::Form::point, .label = "a", .points = {{2.2, 0.9}}}, 1, map);
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
  CHECK(contains(labelme_failure(R"({"shapes": [{"label": "a", "points": [[0, 1]], "shape_type": "mask"}]})"),
                 "linestrip and point are read"));
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

TEST_SUITE_END();
