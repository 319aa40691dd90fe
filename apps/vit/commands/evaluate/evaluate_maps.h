// vit evaluate --task depth|segment: maps compared with those of a data set.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "apps/vit/options/options.h"
#include "vit/analysis/map_metrics.h"

namespace vit::app {

enum class MapTask { none, depth, segment };
enum class AlignChoice { automatic, none, median, affine };

struct MapEvaluation {
  MapTask task = MapTask::none;
  std::filesystem::path folder;  // of images
  std::filesystem::path truth;   // a folder of maps named as the images, or panoptic annotations of COCO
  std::optional<double> truth_scale;
  std::optional<std::array<float, 2>> limits;  // of depths that count, metres
  AlignChoice align = AlignChoice::automatic;
  std::optional<std::size_t> ignored;  // of segment: the number of pixels without a class
  bool reduce = false;                 // 0 is no class, and 1 the first
  bool as_json = false;

  bool has_options() const {
    return !truth.empty() || truth_scale || limits || align != AlignChoice::automatic || ignored || reduce;
  }
};

/// --task, --truth and what they take.
void add_map_options(std::vector<Option>& list, MapEvaluation& evaluation);

/// Prints the measures. Returns the exit code.
int evaluate_maps(const MapEvaluation& evaluation, CommonOptions common);

}  // namespace vit::app
