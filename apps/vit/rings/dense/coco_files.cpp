#include "apps/vit/rings/dense/coco_files.h"

#include <algorithm>
#include <array>
#include <vector>

#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"

namespace vit::app {
using namespace internal;
namespace {

/// Five bits a letter, the lowest first; the sixth says that more follow. Source: pycocotools, maskApi.c.
void append_run(std::string& out, std::int64_t value) {
  constexpr int kBits = 5;
  constexpr char kFirst = '0';
  for (bool more = true; more;) {
    auto letter = static_cast<char>(value & 0x1f);
    value >>= kBits;
    more = (letter & 0x10) != 0 ? value != -1 : value != 0;
    if (more) letter = static_cast<char>(letter | 0x20);
    out += static_cast<char>(letter + kFirst);
  }
}

/// [x, y, width, height].
std::array<std::size_t, 4> edges_of(const PixelFrame& frame) {
  return {frame.x, frame.y, frame.width, frame.height};
}

/// The end of a segment's object.
void end_segment(JsonWriter& json, const Segment& segment) {
  json.member("iscrowd", 0);
  if (segment.score) json.member("score", *segment.score);
  json.end_object();
}

}  // namespace

namespace {

template <typename Number, typename Inside>
PixelFrame frame_where(TensorView<const Number> map, const Inside& is_inside) {
  std::size_t left = map.dim(1), right = 0, top = map.dim(0), bottom = 0;
  for (std::size_t y = 0; y < map.dim(0); ++y) {
    const Number* const row = map.row(y);
    for (std::size_t x = 0; x < map.dim(1); ++x) {
      if (!is_inside(row[x])) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = y;
    }
  }
  if (left > right || top > bottom) return {};
  return {left, top, right + 1 - left, bottom + 1 - top};
}

template <typename Number, typename Inside>
std::string runs_where(TensorView<const Number> map, const Inside& is_part) {
  std::vector<std::int64_t> runs{0};  // of others and of this one, alternating
  bool is_inside = false;
  for (std::size_t x = 0; x < map.dim(1); ++x) {
    for (std::size_t y = 0; y < map.dim(0); ++y) {
      if (is_part(map.row(y)[x]) != is_inside) {
        is_inside = !is_inside;
        runs.push_back(0);
      }
      ++runs.back();
    }
  }
  std::string out;
  // from the third on as the difference to the run two before
  for (std::size_t i = 0; i < runs.size(); ++i) append_run(out, i > 2 ? runs[i] - runs[i - 2] : runs[i]);
  return out;
}

bool is_set(std::uint8_t value) {
  return value != 0;
}

void write_runs(JsonWriter& json, std::array<std::size_t, 2> size, const std::string& counts) {
  json.key("segmentation").begin_object().array("size", size);
  json.member("counts", counts).end_object();
}

/// An object of a list of results.
void add_result(JsonWriter& json, const Segment& segment, const std::string& name, const std::string& file,
                std::array<std::size_t, 2> size, const std::string& counts, const PixelFrame& frame) {
  json.on_own_line().begin_object().member("image_id", name).member("file_name", file);
  json.member("category_id", segment.index).member("category", segment.label);
  write_runs(json, size, counts);
  json.array("bbox", edges_of(frame)).member("area", segment.area);
  end_segment(json, segment);
}

}  // namespace

PixelFrame frame_of(TensorView<const std::int32_t> map, std::int32_t id) {
  return frame_where(map, [id](std::int32_t value) { return value == id; });
}

PixelFrame frame_of(TensorView<const std::uint8_t> mask) {
  return frame_where(mask, is_set);
}

std::string run_lengths(TensorView<const std::int32_t> map, std::int32_t id) {
  return runs_where(map, [id](std::int32_t value) { return value == id; });
}

std::string run_lengths(TensorView<const std::uint8_t> mask) {
  return runs_where(mask, is_set);
}

void write_runs(JsonWriter& json, TensorView<const std::uint8_t> mask) {
  write_runs(json, {mask.dim(0), mask.dim(1)}, run_lengths(mask));
}

std::string coco_results(const SegmentMap& map, const std::string& name, const std::string& file) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Segment& segment : map.segments)
    add_result(json, segment, name, file, {map.map.dim(0), map.map.dim(1)}, run_lengths(map.map, segment.id),
               frame_of(map.map, segment.id));
  out += "\n";
  json.end_array();
  return out + "\n";
}

std::string coco_results(std::span<const Segment> segments, TensorView<const std::uint8_t> masks,
                         const std::string& name, const std::string& file) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (std::size_t i = 0; i < segments.size(); ++i)
    add_result(json, segments[i], name, file, {masks.dim(1), masks.dim(2)}, run_lengths(masks[i]),
               frame_of(masks[i]));
  out += "\n";
  json.end_array();
  return out + "\n";
}

std::string coco_panoptic(const SegmentMap& map, const std::string& name, const std::string& picture) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("annotations").begin_array().begin_object();
  json.member("image_id", name).member("file_name", picture).key("segments_info").begin_array();
  for (const Segment& segment : map.segments) {
    json.on_own_line().begin_object().member("id", segment.id + 1).member("category_id", segment.index);
    json.member("category", segment.label).member("area", segment.area);
    json.array("bbox", edges_of(frame_of(map.map, segment.id)));
    end_segment(json, segment);
  }
  out += "\n";
  json.end_array().end_object().end_array().end_object();
  return out + "\n";
}

Image coco_panoptic_picture(const SegmentMap& map) {
  Image out(map.map.dim(0), map.map.dim(1));
  for (std::size_t i = 0; i < map.map.num_elements(); ++i) {
    const auto id = static_cast<std::uint32_t>(map.map.data()[i] + 1);
    for (std::size_t c = 0; c < 3; ++c) out.data()[3 * i + c] = static_cast<unsigned char>(id >> (8 * c));
  }
  return out;
}

}  // namespace vit::app
