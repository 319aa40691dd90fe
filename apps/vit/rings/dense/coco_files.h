// Segments as COCO's tools read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "apps/vit/ground/text_format.h"
#include "vit/dense.h"

namespace vit::app {

/// Where a segment lies: x, y, width, height in pixels; zeros if it has no pixel.
struct PixelFrame {
  std::size_t x = 0, y = 0, width = 0, height = 0;
};
/// That of the pixels of a mask (H, W) that are not 0.
PixelFrame frame_of(TensorView<const std::uint8_t> mask);
/// These pixels as runs down the columns, in the letters of COCO's compressed form.
std::string run_lengths(TensorView<const std::uint8_t> mask);

/// "segmentation": size and counts of such a mask.
void write_runs(JsonWriter& json, TensorView<const std::uint8_t> mask);

/// A list of results: image_id, category_id, segmentation (size and counts), bbox, area, score. `name`: of
/// the image, for image_id and file_name.
std::string coco_results(const SegmentMap& map, const std::string& name, const std::string& file);
/// The same of segments whose masks (n, H, W) may overlap.
std::string coco_results(std::span<const Segment> segments, TensorView<const std::uint8_t> masks,
                         const std::string& name, const std::string& file);
/// The entry of an image among panoptic annotations; ids are those of coco_panoptic_picture().
std::string coco_panoptic(const SegmentMap& map, const std::string& name, const std::string& picture);
/// Each pixel's id + 1 as r + 256 g + 65536 b; 0 = none.
Image coco_panoptic_picture(const SegmentMap& map);

}  // namespace vit::app
