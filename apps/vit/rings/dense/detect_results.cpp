#include "apps/vit/rings/dense/detect_results.h"

#include <cstdio>
#include <utility>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/draw_shapes.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

std::string coco_of(const std::string& file, std::span<const Detection> found) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Detection& d : found) {
    json.on_own_line().begin_object().member("image_id", file);
    json.member("category_id", d.index).member("category", d.label);
    const double width = d.box.x1 - d.box.x0, height = d.box.y1 - d.box.y0;
    write_edges(json.key("bbox"), {d.box.x0, d.box.y0, width, height}).member("score", d.score).end_object();
  }
  out += "\n";
  json.end_array();
  return out + "\n";
}

/// Frames, names and scores over the image, to a file and to the page.
void draw_detections(MapOutputs& outputs, const ImageRun& run, const StreamedImage& image,
                     std::span<const Detection> found) {
  const Input& input = run.inputs()[image.index];
  Image picture = picture_of(run, input, image.size);
  for (const Detection& d : found) draw_frame(picture, d.box, voc_color(d.index + 1));
  for (const Detection& d : found) {
    char score[16];
    std::snprintf(score, sizeof score, " %.2f", static_cast<double>(d.score));
    draw_name(picture, d.box, d.label + score, voc_color(d.index + 1));
  }
  if (outputs.writes("color")) write_png(outputs.path_of(image.index, "color"), picture);
  if (!outputs.has_page()) return;
  PageItem item = named_item(input.name);
  item.note = text(image.size.width, " x ", image.size.height);
  for (const Detection& d : found) item.labels.push_back({.name = d.label, .score = d.score});
  outputs.add_to_page(run, input, std::move(item), picture);
}

}  // namespace

std::string line_of_detections(const std::string& file, std::span<const Detection> found, bool is_json) {
  if (!is_json) {
    std::string out = printable(file) + "\n";
    for (const Detection& d : found) {
      char numbers[160];
      std::snprintf(numbers, sizeof numbers, "  %6.2f %%  %9.1f %9.1f %9.1f %9.1f  ",
                    100.0 * static_cast<double>(d.score), d.box.x0, d.box.y0, d.box.x1, d.box.y1);
      out += numbers + printable(d.label) + "\n";
    }
    if (found.empty()) out += "  no boxes (--threshold sets the score that they need)\n";
    return out;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_boxes(json, found);
  json.end_object();
  return out + "\n";
}

std::vector<NamedArray> arrays_of_detections(std::span<const Detection> found) {
  NamedArray boxes = NamedArray::of_rows("boxes", {found.size(), 4}),
             scores = NamedArray::of_rows("scores", {found.size()});
  NamedArray classes = NamedArray::of_rows("classes", {found.size()}, internal::Dtype::i32);
  for (const Detection& d : found) {
    for (const double edge : {d.box.x0, d.box.y0, d.box.x1, d.box.y1}) boxes.push(static_cast<float>(edge));
    scores.push(d.score);
    classes.push(static_cast<std::int32_t>(d.index));
  }
  return {std::move(boxes), std::move(scores), std::move(classes)};
}

void write_detections(MapOutputs& outputs, ImageRun& run, const StreamedImage& image,
                      std::span<const Detection> found) {
  const Input& input = run.inputs()[image.index];
  if (outputs.writes("coco")) write_text(outputs.path_of(image.index, "coco"), coco_of(input.name, found));
  if (outputs.writes("color") || outputs.has_page()) draw_detections(outputs, run, image, found);
}

}  // namespace vit::app
