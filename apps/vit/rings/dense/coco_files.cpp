#include "apps/vit/rings/dense/coco_files.h"

#include <algorithm>
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

std::string frame_text(const PixelFrame& frame) {
  return text("[", frame.x, ", ", frame.y, ", ", frame.width, ", ", frame.height, "]");
}

void append_score(std::string& out, const Segment& segment) {
  if (!segment.score) return;
  out += ", \"score\": ";
  append_json_float(out, *segment.score);
}

}  // namespace

PixelFrame frame_of(TensorView<const std::int32_t> map, std::int32_t id) {
  std::size_t left = map.dim(1), right = 0, top = map.dim(0), bottom = 0;
  for (std::size_t y = 0; y < map.dim(0); ++y) {
    const std::int32_t* const row = map.row(y);
    for (std::size_t x = 0; x < map.dim(1); ++x) {
      if (row[x] != id) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = y;
    }
  }
  if (left > right || top > bottom) return {};
  return {left, top, right + 1 - left, bottom + 1 - top};
}

std::string run_lengths(TensorView<const std::int32_t> map, std::int32_t id) {
  std::vector<std::int64_t> runs{0};  // of others and of this one, alternating
  bool is_inside = false;
  for (std::size_t x = 0; x < map.dim(1); ++x) {
    for (std::size_t y = 0; y < map.dim(0); ++y) {
      if ((map.row(y)[x] == id) != is_inside) {
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

std::string coco_results(const SegmentMap& map, const std::string& name, const std::string& file) {
  std::string out = "[";
  for (const Segment& segment : map.segments) {
    out += out.size() > 1 ? ",\n {" : "\n {";
    out += "\"image_id\": " + json_string(name) + ", \"file_name\": " + json_string(file);
    out += text(", \"category_id\": ", segment.index, ", \"category\": ", json_string(segment.label));
    out += text(", \"segmentation\": {\"size\": [", map.map.dim(0), ", ", map.map.dim(1),
                "], \"counts\": ", json_string(run_lengths(map.map, segment.id)),
                "}, \"bbox\": ", frame_text(frame_of(map.map, segment.id)), ", \"area\": ", segment.area,
                ", \"iscrowd\": 0");
    append_score(out, segment);
    out += "}";
  }
  return out + "\n]\n";
}

std::string coco_panoptic(const SegmentMap& map, const std::string& name, const std::string& picture) {
  std::string out = "{\"annotations\": [{\"image_id\": " + json_string(name) +
                    ", \"file_name\": " + json_string(picture) + ", \"segments_info\": [";
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const Segment& segment = map.segments[i];
    out += text(i != 0 ? ",\n {" : "\n {", "\"id\": ", segment.id + 1, ", \"category_id\": ", segment.index,
                ", \"category\": ", json_string(segment.label), ", \"area\": ", segment.area,
                ", \"bbox\": ", frame_text(frame_of(map.map, segment.id)), ", \"iscrowd\": 0");
    append_score(out, segment);
    out += "}";
  }
  return out + "\n]}]}\n";
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
