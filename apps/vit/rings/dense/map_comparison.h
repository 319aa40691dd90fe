// What vit evaluate --task compares: the maps that a model gives with those of a data set.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/vit/ground/json_value.h"
#include "vit/base/check.h"
#include "vit/session.h"

namespace vit::app {

inline constexpr internal::Where kMapMismatch{"evaluate", ErrorKind::mismatch};

enum class MapTask { none, depth, segment };
enum class AlignChoice { automatic, none, median, affine };

/// --task depth|segment: maps compared with those of a data set.
struct MapEvaluation {
  MapTask task = MapTask::none;
  std::filesystem::path truth;      // a folder of maps named as the images, or panoptic annotations of COCO
  std::filesystem::path upsampler;  // of the head of --classifier, if it was moved
  std::optional<double> truth_scale;
  std::optional<std::array<float, 2>> limits;  // of depths that count, metres
  AlignChoice align = AlignChoice::automatic;
  std::optional<std::size_t> ignored;  // of segment: the number of pixels without a class
  bool reduce = false;                 // 0 is no class, and 1 the first

  bool has_options() const {
    return !truth.empty() || truth_scale || limits || align != AlignChoice::automatic || ignored || reduce ||
           !upsampler.empty();
  }
};

/// Compares the maps of one image after the other.
class MapComparison {
 public:
  virtual ~MapComparison() = default;

  /// Compares the maps of an image with its truth, which has this name. Throws Error if that is missing
  /// or unusable, and the image does not count.
  virtual void add(const StreamedImage& image, const std::filesystem::path& name) = 0;
  /// The measures of all images that were added, `num_images` > 0.
  virtual JsonValue result(std::size_t num_images) const = 0;
  /// A result for people to read.
  virtual std::string as_text(const JsonValue& result) const = 0;
};

/// Both throw Error for a model without such a head. `evaluation` and `model` must outlive the comparison.
std::unique_ptr<MapComparison> compare_depth(const MapEvaluation& evaluation, const Model& model,
                                             int threads);
std::unique_ptr<MapComparison> compare_segments(const MapEvaluation& evaluation, const Model& model,
                                                int threads);

}  // namespace vit::app
