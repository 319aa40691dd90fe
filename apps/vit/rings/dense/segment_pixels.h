// vit segment --classifier and --like: classes of pixels that were learned, or shown in an example, on the
// features of any model.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/commands/measure.h"
#include "apps/vit/ground/command_line.h"
#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/map_comparison.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "vit/dense.h"

namespace vit::app {

struct PixelClassOptions {
  std::filesystem::path classifier;  // a head of vit fit --truth
  std::string like;                  // IMAGE:X,Y,... or IMAGE:MASK.png
  std::filesystem::path upsampler;   // the network of the head, if it was moved
  bool probabilities = false;
  bool regions = false;

  bool are_given() const { return !classifier.empty() || !like.empty(); }
};
void add_pixel_class_options(std::vector<Option>& list, PixelClassOptions& options);
/// Throws UsageError for options that are given without --classifier and --like.
void check_pixel_class_options(const PixelClassOptions& options);

/// Connected pixels of one class.
struct Region {
  Segment segment;
  PixelFrame frame;
  double x = 0, y = 0;  // mean of the centers of its pixels
};
/// Those connected by edges in a map of classes (H, W), -1 = none, in the order of their first pixels; their
/// ids replace the classes in the map.
std::vector<Region> take_regions(SegmentMap& map, std::span<const std::string> labels);

/// Runs the command. `run.common` takes what the head's record says. Returns the exit code.
int segment_pixels(DenseRunOptions& run, const PixelClassOptions& options);

/// vit evaluate --task segment --classifier HEAD. Returns the exit code.
int evaluate_pixels(const MapEvaluation& evaluation, const EvaluateRun& run);

}  // namespace vit::app
