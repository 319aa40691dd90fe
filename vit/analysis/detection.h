// How well scores separate anomalous from good images: AUROC of images and pixels, and PRO of regions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Area under the ROC curve, the probability that a positive has the larger score; equal scores count half:
/// scikit-learn's roc_auc_score. is_positive (n): 0 = negative. Throws Error for different sizes, scores that
/// are not finite, and unless both kinds occur.
VIT_API double roc_auc(std::span<const float> scores, std::span<const std::uint8_t> is_positive);

/// Scores of pixels with the regions of the ground truth. Takes 8 bytes per pixel.
/// ```
/// vit::Tensor<float> map(vit::Shape{4, 4});           // of each image
/// vit::Tensor<std::uint8_t> mask(vit::Shape{4, 4});   // 0 = good
/// map.data()[5] = 0.9f;
/// mask.data()[5] = 255;
/// vit::PixelScores pixels;
/// pixels.add(map, mask);
/// const double area = pixels.roc_auc(), overlap = pixels.per_region_overlap(0.3);
/// ```
class VIT_API PixelScores {
 public:
  /// A map (H, W) and its mask (H, W), 0 = good; the mask of a good image may be empty. Connected pixels (8
  /// neighbors) are a region. Throws Error for different sizes and scores that are not finite.
  void add(TensorView<const float> map, TensorView<const std::uint8_t> mask);

  std::size_t num_pixels() const noexcept { return pixels_.size(); }  // added so far
  std::size_t num_regions() const noexcept { return sizes_.size(); }  // of all masks

  /// Area under the ROC curve of pixels. Throws Error unless good and anomalous pixels occur.
  double roc_auc();
  /// Area under the curve of the per-region overlap, the mean share of a region at or above a threshold, over
  /// the share of good pixels there, from 0 to `limit`, divided by `limit` (Bergmann et al. 2021, who take
  /// 0.3). Throws Error as roc_auc does, and for a limit outside (0, 1].
  double per_region_overlap(double limit = 0.3);

 private:
  struct Pixel {
    float score;
    std::uint32_t region;  // from 1; 0 = good
  };
  void sort();

  std::vector<Pixel> pixels_;
  std::vector<std::size_t> sizes_;  // pixels of each region
  bool is_sorted_ = false;
};

}  // namespace vit
