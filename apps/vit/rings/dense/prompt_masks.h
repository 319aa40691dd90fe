// Results of prompts as lines, arrays, files and pages: segments whose masks may overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "vit/dense.h"

namespace vit::app {

/// Segments in falling score.
struct FoundMasks {
  std::vector<Segment> segments;
  std::vector<Box> boxes;                             // of the segments
  std::vector<TensorView<const std::uint8_t>> masks;  // (H, W) of the segments
  ImageSize image;

  /// Sorts by score; equal ones keep their order. Numbers the segments.
  void sort();
  /// The id of the best segment of each pixel, -1 = none.
  Tensor<std::int32_t> best_of_pixels() const;
  /// (n, H, W).
  Tensor<std::uint8_t> joined() const;
};

/// The number of pixels that are set.
std::size_t area_of(TensorView<const std::uint8_t> mask);

/// The PNG of ids (H, W) below `count`, or -1.
std::vector<std::byte> ids_png(TensorView<const std::int32_t> ids, std::size_t count);

/// "task" and "segments", with boxes; `more` adds members to the object of a segment.
void write_found(JsonWriter& json, const FoundMasks& found, const char* task,
                 const std::function<void(JsonWriter& json, std::size_t segment)>& more = {});
/// The line of an image: with boxes.
std::string line_of_masks(const std::string& file, const FoundMasks& found, const char* task, bool is_json);
/// masks, boxes, scores and segmentation.
std::vector<NamedArray> arrays_of_masks(const FoundMasks& found);
/// Writes and prints a map of classes.
void write_semantic(MapOutputs& outputs, ImageRun& run, const StreamedImage& image, const SegmentMap& map,
                    std::span<const Color> colors, bool is_json);
/// Writes what `outputs` wants of an image.
void write_masks(MapOutputs& outputs, ImageRun& run, const StreamedImage& image, const FoundMasks& found);

}  // namespace vit::app
