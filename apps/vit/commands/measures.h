// What vit evaluate measures besides the accuracy of a classifier; each has a source file of its own.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/options/options.h"
#include "vit/rings/dense/map_metrics.h"

namespace vit::app {

/// --anomaly: how well a bank separates good images from damaged ones, in a tree like MVTec's.
struct AnomalyEvaluation {
  std::filesystem::path bank;
  std::filesystem::path folder;   // with good/ and a folder for each kind of defect, or with such a test/
  std::optional<double> limit{};  // of the share of good pixels, for PRO; nothing = 0.3
  bool as_json = false;
};

/// Prints image and pixel AUROC and PRO. Returns the exit code.
int evaluate_anomaly(const AnomalyEvaluation& evaluation, CommonOptions common);

enum class MapTask { none, depth, segment };
enum class AlignChoice { automatic, none, median, affine };

/// --task depth|segment: maps compared with those of a data set.
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

/// --scale-consistency, which needs no labels.
struct ScaleOptions {
  std::filesystem::path folder{};    // of images, in folders of any depth
  std::vector<std::size_t> sizes{};  // edges in pixels
  bool as_json = false;
};

/// "224,336". Throws UsageError.
std::vector<std::size_t> parse_sizes(const std::string& list);

/// Compares the patch features of each image at --size with those at the other sizes, and prints the means.
/// Returns the exit code.
int evaluate_scales(const ScaleOptions& options, const CommonOptions& common);

}  // namespace vit::app
