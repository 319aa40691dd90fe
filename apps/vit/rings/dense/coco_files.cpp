#include "apps/vit/rings/dense/coco_files.h"

#include <algorithm>
#include <array>
#include <unordered_map>
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

/// Runs of others and of one segment, alternating, from the first pixel on, down the columns.
std::string letters_of(std::span<const std::int64_t> runs) {
  std::string out;
  // from the third on as the difference to the run two before
  for (std::size_t i = 0; i < runs.size(); ++i) append_run(out, i > 2 ? runs[i] - runs[i - 2] : runs[i]);
  return out;
}

/// A segment of a map as it is traced down the columns.
struct Trace {
  std::vector<std::int64_t> runs{};
  std::int64_t end = 0;  // of the latest run, in pixels
  std::size_t left = 0, right = 0, top = 0, bottom = 0;

  /// A run of `count` pixels from row y of column x on, in columns of `height` pixels.
  void add(std::size_t x, std::size_t y, std::size_t count, std::size_t height) {
    const auto begin = static_cast<std::int64_t>(x * height + y);
    if (runs.empty()) {
      left = x;
      top = y;
    }
    if (!runs.empty() && begin == end) {
      runs.back() += static_cast<std::int64_t>(count);
    } else {
      runs.push_back(begin - end);
      runs.push_back(static_cast<std::int64_t>(count));
    }
    end = begin + static_cast<std::int64_t>(count);
    right = x;
    top = std::min(top, y);
    bottom = std::max(bottom, y + count - 1);
  }
  std::string letters(std::size_t num_pixels) {
    const std::int64_t rest = static_cast<std::int64_t>(num_pixels) - end;
    if (rest > 0 || runs.empty()) runs.push_back(rest);
    return letters_of(runs);
  }
  PixelFrame frame() const {
    return runs.empty() ? PixelFrame{} : PixelFrame{left, top, right + 1 - left, bottom + 1 - top};
  }
};

/// Those of the segments of a map, in their order, in one pass over it.
std::vector<Trace> traces_of(const SegmentMap& map) {
  std::unordered_map<std::int32_t, std::size_t> places;
  for (std::size_t i = 0; i < map.segments.size(); ++i) places.emplace(map.segments[i].id, i);
  std::vector<Trace> out(map.segments.size());
  const std::size_t height = map.map.dim(0), width = map.map.dim(1);
  const std::int32_t* const ids = map.map.data();
  for (std::size_t x = 0; x < width; ++x) {
    for (std::size_t y = 0; y < height;) {
      const std::int32_t id = ids[y * width + x];
      const std::size_t begin = y;
      while (y < height && ids[y * width + x] == id) ++y;
      if (const auto found = places.find(id); found != places.end())
        out[found->second].add(x, begin, y - begin, height);
    }
  }
  return out;
}

/// That of the pixels of a mask that are not 0.
Trace trace_of(TensorView<const std::uint8_t> mask) {
  Trace out;
  const std::size_t height = mask.dim(0);
  for (std::size_t x = 0; x < mask.dim(1); ++x) {
    for (std::size_t y = 0; y < height;) {
      const std::size_t begin = y;
      while (y < height && mask.row(y)[x] != 0) ++y;
      if (y > begin) out.add(x, begin, y - begin, height);
      while (y < height && mask.row(y)[x] == 0) ++y;
    }
  }
  return out;
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

PixelFrame frame_of(TensorView<const std::uint8_t> mask) {
  return trace_of(mask).frame();
}

std::string run_lengths(TensorView<const std::uint8_t> mask) {
  return trace_of(mask).letters(mask.num_elements());
}

void write_runs(JsonWriter& json, TensorView<const std::uint8_t> mask) {
  write_runs(json, {mask.dim(0), mask.dim(1)}, run_lengths(mask));
}

std::string coco_results(const SegmentMap& map, const std::string& name, const std::string& file) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  std::vector<Trace> traces = traces_of(map);
  for (std::size_t i = 0; i < traces.size(); ++i)
    add_result(json, map.segments[i], name, file, {map.map.dim(0), map.map.dim(1)},
               traces[i].letters(map.map.num_elements()), traces[i].frame());
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
  const std::vector<Trace> traces = traces_of(map);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Segment& segment = map.segments[i];
    json.on_own_line().begin_object().member("id", segment.id + 1).member("category_id", segment.index);
    json.member("category", segment.label).member("area", segment.area);
    json.array("bbox", edges_of(traces[i].frame()));
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
