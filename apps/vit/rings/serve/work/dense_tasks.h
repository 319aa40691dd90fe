// Depth, segments, boxes and keypoints as results of requests: those of the commands of the same names.
#pragma once

#include <memory>
#include <optional>

#include "apps/vit/outputs/color_maps.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/serve/work/map_form.h"
#include "apps/vit/rings/serve/work/output_task.h"
#include "vit/image/preprocess.h"

namespace vit::app {

struct DepthAsked {
  MapForm form = MapForm::png;
  bool raw = false;  // npy: what the head gives
  double png_scale = 1000.0;
  std::optional<ColorMap> colors{};
};
struct SegmentAsked {
  MapForm form = MapForm::png;
  bool raw = false;
  SegmentChoices choices{};
};

// `preprocessor`: that of the model's images, which outlives the task.
/// {"index", "unit", "min", "max", "width", "height", "depth"}.
std::shared_ptr<OutputTask> depth_task(const Preprocessor& preprocessor, const DepthAsked& asked);
/// {"index", "task", "segments", "width", "height", "segmentation"}.
std::shared_ptr<OutputTask> segment_task(const Preprocessor& preprocessor, const SegmentAsked& asked);
/// {"index", "boxes"}, of the classes of the work, or the model's own.
std::shared_ptr<OutputTask> detect_task(const Preprocessor& preprocessor, std::optional<float> threshold);
/// {"box", "keypoints"} of an item, which is a box of an image, or a whole one.
std::shared_ptr<OutputTask> pose_task();

}  // namespace vit::app
