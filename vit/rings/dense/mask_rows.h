// Masks of queries at the pixels of the model and at the size of an image, by linear interpolation with edges
// aligned. Rows are made when they are needed, so that no mask is held at the size of the image. Letters: Q
// queries, C classes, (h, w) = a mask as the head gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit::internal {

/// Where the pixels of one axis come from: first * (1 - t) + second * t.
struct Lerp {
  std::vector<std::uint32_t> first, second;
  std::vector<float> t;

  /// The outputs [0, count) of an axis of `in` points that becomes `out`.
  Lerp(std::size_t in, std::size_t out, std::size_t count);
  std::size_t size() const noexcept { return first.size(); }
  /// The points of a row; `to` is another one.
  void apply(const float* from, float* to) const;
};

/// Numbers between those of two rows; `to` may be one of them.
void blend(const float* above, const float* below, float t, std::size_t count, float* to);

/// A mask (h, w) at the pixels of the model, of which those in the upper left corner are wanted.
struct MaskRows {
  Lerp rows, columns;
  MaskRows(TensorView<const float> masks, ImageSize pixels, ImageSize wanted);
  /// `scratch` takes a row of the mask.
  void row(TensorView<const float> mask, std::size_t y, float* scratch, float* to) const;
};

/// Masks (Q, h, w) at the size of the image, row by row. `content`: the part of the pixels that shows it.
class ImageRows {
 public:
  ImageRows(TensorView<const float> masks, ImageSize pixels, ImageSize content, ImageSize image);

  std::size_t scratch_floats() const noexcept { return masks_.dim(2) + 3 * pixels_.columns.size(); }
  void row(std::size_t query, std::size_t y, float* scratch, float* to) const;

 private:
  TensorView<const float> masks_;
  MaskRows pixels_;
  Lerp rows_, columns_;
};

/// Scores of all classes, C rows, at the rows of the model's pixels: masks weighted with the probabilities
/// (Q, C + 1) of their queries. Those of windows are averaged.
class ClassRows {
 public:
  ClassRows(TensorView<const float> masks, const Tensor<float>& probabilities, std::size_t windows,
            ImageSize pixels);

  std::size_t num_classes() const noexcept { return probabilities_.dim(1) - 1; }
  std::size_t width() const noexcept { return pixels_.width; }
  std::size_t scratch_floats() const noexcept { return masks_.dim(2) + edge_.width + width(); }
  /// (C, width) at row `y`.
  void row(std::size_t y, float* scratch, float* to) const;

 private:
  void add_window(std::size_t window, std::size_t y, float* scratch, float* to) const;

  TensorView<const float> masks_;
  const Tensor<float>& probabilities_;
  std::size_t windows_;
  ImageSize pixels_, edge_;  // of all windows together, and of one
  MaskRows rows_;
};

}  // namespace vit::internal
