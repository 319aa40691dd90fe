// From labels of pixels to rows of training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/rings/fit/pixel_grid.h"

namespace vit::internal {

/// Rows of training: pixels of one class and stroke that are nearest to the same patch.
struct PixelRows {
  std::size_t num_features = 0;         // C
  std::vector<float> numbers;           // (n, C) means of the features of these pixels
  std::vector<std::uint32_t> classes;   // (n)
  std::vector<std::size_t> strokes;     // (n) number of the stroke in its image
  std::vector<std::size_t> num_pixels;  // (n)
};

/// The stroke of each labeled pixel of labels (H, W), -1 = not labeled: the pixels of a class that are
/// connected by edges or corners, numbered from 0 in the order of their first pixels.
Tensor<std::int32_t> strokes_of(TensorView<const std::int32_t> labels);

/// The rows of an image, in the order of their first pixels.
PixelRows rows_of_labels(std::span<const FeatureGrid> grids, const Image& image, bool with_color,
                         TensorView<const std::int32_t> labels, int threads);

}  // namespace vit::internal
