// Results of depth, segment, detect and pose as members of JSON objects, arrays and PNG files: what the
// commands write and what the server answers. Letters: H, W = height and width of the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/rings/dense/dense_options.h"
#include "vit/boxes.h"
#include "vit/dense.h"
#include "vit/pose.h"

namespace vit::app {

// ---------------------------------------------------------------------------------------------------- depth

/// "unit", "min", "max".
void write_depth(JsonWriter& json, const DepthMap& map);
/// 16 bits: depths in meters as `png_scale` units a meter, others from the smallest to the largest.
std::vector<std::byte> depth_png(const DepthMap& map, double png_scale);
/// The colors of a map that has no name: those that show what is near in red.
ColorMap default_depth_colors(DepthUnit unit);

/// What is written of depth besides the map.
struct DepthArrays {
  bool raw = false;  // what the head gives
  bool normals = false, logits = false;

  /// Of a head that has them.
  static DepthArrays of(const DenseConfig& config, bool raw);
  /// Adds them to a request of depth.
  void add_to(Request& request) const;
};
/// depth (H, W), normals (3, H, W), logits.
std::vector<NamedArray> depth_arrays(const ImageOutputs& outputs, const DepthMap& map,
                                     const DepthArrays& which, int threads);

// ------------------------------------------------------------------------------------------------- segments

/// What a user says about segments; what is not said is the model's.
struct SegmentChoices {
  std::optional<SegmentTask> task;
  std::optional<double> threshold, mask_threshold, overlap;
  std::vector<std::string> stuff;  // names or numbers of classes
};
/// "semantic", "instance", "panoptic".
const char* to_string(SegmentTask task);
/// The number of classes that the head of a model distinguishes.
std::size_t num_segment_classes(const DenseConfig& config);
/// How masks become segments; `labels`: a name for each class, or none. Throws UsageError for choices that
/// the task does not have, and for classes that the model does not have.
SegmentOptions segment_options(const SegmentChoices& choices, const Model& model,
                               std::vector<std::string> labels);
/// "task", "segments".
void write_segments(JsonWriter& json, const SegmentMap& map, SegmentTask task);
/// The colors of ids: of classes those of `palette`.
std::vector<Color> colors_of_ids(const SegmentMap& map, SegmentTask task, std::span<const Color> palette);
/// The ids with a palette, 255 = none; of 16 bits where there are more.
std::vector<std::byte> segment_png(const SegmentMap& map, SegmentTask task, std::span<const Color> palette);
/// segmentation (H, W), or with `raw` what the head gives.
std::vector<NamedArray> segment_arrays(const ImageOutputs& outputs, const SegmentMap& map, bool raw);

// ------------------------------------------------------------------------------------------ boxes, keypoints

/// "boxes".
void write_boxes(JsonWriter& json, std::span<const Detection> found);
/// The model's names of its own classes by which boxes are called. `labels`: a file of other names, or "".
std::vector<std::string> box_labels(const DenseConfig& config, const std::filesystem::path& labels);
/// {"box", "keypoints"}.
void write_pose(JsonWriter& json, const Box& box, std::span<const Keypoint> keypoints);

}  // namespace vit::app
