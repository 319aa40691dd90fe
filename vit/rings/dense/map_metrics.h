// How good maps of depth and of segments are, by the measures of the field, summed over images. Letters: H, W
// = of an image, C classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

// -------------------------------------------------------------------------------------------------------
// depth

/// What is fitted to the truth before depths are compared.
enum class DepthAlignment {
  none,     // metres are metres
  median,   // a factor, by the ratio of the medians
  depth,    // factor and offset by least squares
  inverse,  // factor and offset of inverse depth by least squares, then 1 / x
};

struct DepthMeasures {
  double abs_rel = 0;  // mean of |p - t| / t
  double delta1 = 0;   // share of pixels with max(p / t, t / p) < 1.25
  double rmse = 0;     // root of the mean of (p - t)^2, in units of the truth
  std::size_t pixels = 0;
};

/// Of the pixels whose truth is finite and between `lowest` and `highest`. `depth` and `truth` (H, W).
/// Predictions are cut to these limits after the alignment. Throws Error for maps of different sizes;
/// nothing if no pixel has a truth.
std::optional<DepthMeasures> measure_depth(TensorView<const float> depth, TensorView<const float> truth,
                                           DepthAlignment alignment, float lowest, float highest);

// ----------------------------------------------------------------------------------------------------
// segments

/// Pixels of all classes as others, over all images.
class ClassScores {
 public:
  explicit ClassScores(std::size_t num_classes);
  /// Maps (H, W). Pixels whose truth is no class do not count; a prediction of none is an error of the
  /// truth's class. Throws Error for maps of different sizes.
  void add(TensorView<const std::int32_t> found, TensorView<const std::int32_t> truth);

  std::size_t num_pixels() const noexcept { return num_pixels_; }
  /// Intersection over union; nothing for a class that nowhere is or was found.
  std::optional<double> iou(std::size_t index) const;
  /// Mean over the classes that have one.
  double mean_iou() const;
  /// Share of pixels that are right.
  double accuracy() const;

 private:
  std::vector<std::uint64_t> right_, truth_, found_;  // of each class
  std::uint64_t num_pixels_ = 0;
};

/// A segment of a panoptic map.
struct PanopticSegment {
  std::int32_t id = 0;
  std::size_t index = 0;  // class
  bool is_crowd = false;  // of the truth: many things under one mask
};

/// Panoptic quality (Kirillov et al. 2019), as panopticapi computes it.
class PanopticScores {
 public:
  explicit PanopticScores(std::size_t num_classes);
  /// Maps (H, W) of ids, -1 = none. Throws Error for maps of different sizes, and for an id that no segment
  /// has.
  void add(TensorView<const std::int32_t> found, std::span<const PanopticSegment> found_segments,
           TensorView<const std::int32_t> truth, std::span<const PanopticSegment> truth_segments);

  struct Quality {
    double quality = 0;       // PQ = segmentation * recognition
    double segmentation = 0;  // mean IoU of what was matched
    double recognition = 0;   // F1
    std::size_t classes = 0;  // that count
  };
  /// Means over the classes that nowhere are neither found nor there.
  Quality mean() const;
  std::optional<Quality> of_class(std::size_t index) const;

 private:
  struct Counts {
    double iou = 0;
    std::size_t matched = 0, extra = 0, missed = 0;
  };
  std::vector<Counts> counts_;
};

}  // namespace vit
