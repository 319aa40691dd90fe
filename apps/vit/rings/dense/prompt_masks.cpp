#include "apps/vit/rings/dense/prompt_masks.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

template <typename Item>
std::vector<Item> reordered(const std::vector<Item>& items, std::span<const std::size_t> order) {
  std::vector<Item> out;
  for (const std::size_t i : order) out.push_back(items[i]);
  return out;
}

float score_of_segment(const Segment& segment) {
  return segment.score.value_or(0.0f);
}

}  // namespace

void FoundMasks::sort() {
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return score_of_segment(segments[i]); });
  segments = reordered(segments, order);
  boxes = reordered(boxes, order);
  masks = reordered(masks, order);
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].id = static_cast<std::int32_t>(i);
}

Tensor<std::int32_t> FoundMasks::best_of_pixels() const {
  Tensor<std::int32_t> out(Shape{image.height, image.width});
  std::ranges::fill(out.flat(), -1);
  for (std::size_t i = masks.size(); i-- > 0;) {
    const auto pixels = masks[i].flat();
    for (std::size_t k = 0; k < pixels.size(); ++k) {
      if (pixels[k] != 0) out.data()[k] = static_cast<std::int32_t>(i);
    }
  }
  return out;
}

Tensor<std::uint8_t> FoundMasks::joined() const {
  Tensor<std::uint8_t> out(Shape{masks.size(), image.height, image.width});
  std::uint8_t* to = out.data();
  for (const TensorView<const std::uint8_t>& mask : masks) to = std::ranges::copy(mask.flat(), to).out;
  return out;
}

std::size_t area_of(TensorView<const std::uint8_t> mask) {
  return static_cast<std::size_t>(
      std::ranges::count_if(mask.flat(), [](std::uint8_t pixel) { return pixel != 0; }));
}

std::vector<std::byte> ids_png(TensorView<const std::int32_t> ids, std::size_t count) {
  SegmentMap map{.map = Tensor<std::int32_t>(ids.shape()), .segments = std::vector<Segment>(count)};
  std::ranges::copy(ids.flat(), map.map.data());
  return segment_png(map, SegmentTask::instance, {});
}

void write_found(JsonWriter& json, const FoundMasks& found, const char* task,
                 const std::function<void(JsonWriter& json, std::size_t segment)>& more) {
  json.member("task", task).key("segments").begin_array();
  for (std::size_t i = 0; i < found.segments.size(); ++i) {
    const Segment& segment = found.segments[i];
    json.begin_object().member("id", segment.id).member("index", segment.index);
    json.member("label", segment.label).member("score", segment.score).member("area", segment.area);
    write_box(json.key("box"), found.boxes[i]);
    if (more) more(json, i);
    json.end_object();
  }
  json.end_array();
}

std::string line_of_masks(const std::string& file, const FoundMasks& found, const char* task, bool is_json) {
  std::string out;
  if (!is_json) {
    out = printable(file) + "\n";
    const auto pixels = static_cast<double>(found.image.height * found.image.width);
    for (const Segment& segment : found.segments) {
      char numbers[64];
      std::snprintf(numbers, sizeof numbers, "  %6.2f %%  score %.3f  ",
                    100.0 * static_cast<double>(segment.area) / pixels,
                    static_cast<double>(score_of_segment(segment)));
      out += numbers + printable(segment.label) + "\n";
    }
    if (found.segments.empty()) out += "  nothing found (--threshold sets the score that it needs)\n";
    return out;
  }
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_found(json, found, task);
  json.end_object();
  return out + "\n";
}

std::vector<NamedArray> arrays_of_masks(const FoundMasks& found) {
  std::vector<NamedArray> arrays;
  NamedArray masks = NamedArray::of_rows("masks", {found.masks.size(), found.image.height, found.image.width},
                                         internal::Dtype::u8);
  for (const TensorView<const std::uint8_t>& mask : found.masks) {
    const auto bytes = std::as_bytes(mask.flat());
    masks.bytes.insert(masks.bytes.end(), bytes.begin(), bytes.end());
  }
  arrays.push_back(std::move(masks));
  NamedArray boxes = NamedArray::of_rows("boxes", {found.boxes.size(), 4}),
             scores = NamedArray::of_rows("scores", {found.segments.size()});
  for (const Box& box : found.boxes) {
    for (const double edge : {box.x0, box.y0, box.x1, box.y1}) boxes.push(static_cast<float>(edge));
  }
  for (const Segment& segment : found.segments) scores.push(score_of_segment(segment));
  arrays.push_back(std::move(boxes));
  arrays.push_back(std::move(scores));
  const Tensor<std::int32_t> best = found.best_of_pixels();
  arrays.push_back(NamedArray::of("segmentation", best.view()));
  return arrays;
}

namespace {

std::string line_of_classes(const std::string& file, const SegmentMap& map, bool is_json) {
  std::string out;
  if (!is_json) {
    out = printable(file) + "\n";
    for (const Segment& segment : map.segments) {
      char share[32];
      std::snprintf(share, sizeof share, "  %6.2f %%  ",
                    100.0 * static_cast<double>(segment.area) / static_cast<double>(map.map.num_elements()));
      out += share + printable(segment.label) + "\n";
    }
    if (map.segments.empty()) out += "  nothing found (--mask-threshold sets the probability of a pixel)\n";
    return out;
  }
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_segments(json, map, SegmentTask::semantic);
  json.end_object();
  return out + "\n";
}

}  // namespace

void write_semantic(MapOutputs& outputs, ImageRun& run, const StreamedImage& image, const SegmentMap& map,
                    std::span<const Color> colors, bool is_json) {
  const Input& input = run.inputs()[image.index];
  const auto path = [&](std::string_view word) { return outputs.path_of(image.index, word); };
  if (outputs.writes_arrays()) {
    const NamedArray array = NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map));
    outputs.add_arrays(run, image.index, std::span(&array, 1));
  }
  if (outputs.writes("png")) write_bytes(path("png"), ids_png(map.map, colors.size()));
  if (outputs.writes("color")) write_png(path("color"), colored_ids(map.map, colors));
  if (outputs.writes("coco"))
    write_text(path("coco"), coco_results(map, path("coco").stem().string(), input.name));
  if (outputs.has_page()) {
    PageItem item = named_item(input.name);
    item.note = text(image.size.width, " x ", image.size.height);
    const auto pixels = static_cast<float>(map.map.num_elements());
    for (const Segment& segment : map.segments)
      item.labels.push_back({.name = segment.label, .score = static_cast<float>(segment.area) / pixels});
    const Image picture = picture_of(run, input, image.size);
    outputs.add_to_page(run, input, std::move(item),
                        side_by_side(picture, colored_ids(map.map, colors, &picture)));
  }
  MapOutputs::print(run, line_of_classes(input.name, map, is_json));
}

void write_masks(MapOutputs& outputs, ImageRun& run, const StreamedImage& image, const FoundMasks& found) {
  const Input& input = run.inputs()[image.index];
  const std::vector<Color> colors = segment_colors(found.segments.size());
  const auto path = [&](std::string_view word) { return outputs.path_of(image.index, word); };
  if (outputs.writes("coco")) {
    const Tensor<std::uint8_t> masks = found.joined();
    const TensorView<const std::uint8_t> all(masks);
    write_text(path("coco"), coco_results(found.segments, all, path("coco").stem().string(), input.name));
  }
  if (!outputs.writes("png") && !outputs.writes("color") && !outputs.has_page()) return;
  const Tensor<std::int32_t> best = found.best_of_pixels();
  if (outputs.writes("png")) write_bytes(path("png"), ids_png(best, found.segments.size()));
  if (outputs.writes("color")) write_png(path("color"), colored_ids(best, colors));
  if (!outputs.has_page()) return;
  PageItem item = named_item(input.name);
  item.note =
      text(image.size.width, " x ", image.size.height, "; ", count_of(found.segments.size(), "segment"));
  for (const Segment& segment : found.segments)
    item.labels.push_back({.name = segment.label, .score = score_of_segment(segment)});
  const Image picture = picture_of(run, input, image.size);
  outputs.add_to_page(run, input, std::move(item),
                      side_by_side(picture, colored_ids(best, colors, &picture)));
}

}  // namespace vit::app
