// The similarity of the patch features of an image and of its enlarged copy: a measure of model behavior at
// another size that needs no labels. The command computes the features.
// Letters: h, w = patches per column and row, C = channels.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/config.h"

namespace vit::app {

/// (h, w, C): features (h', w', C) of another grid of the same image, averaged over the area of each patch
/// of `grid`, by the overlap of their areas; in double.
Tensor<double> averaged_patches(TensorView<const float> patches, GridSize grid);

/// Means over all patches of all images.
class ScaleConsistency {
 public:
  /// `trained` (h, w, C) at the first size, `other` (h', w', C) at another. Throws Error if C differs.
  void add(TensorView<const float> trained, TensorView<const float> other);

  /// Cosine between a patch and the same region of the other image; 1 if the size has no effect.
  double same_place() const;
  /// Cosine between patches at different positions: the common part of all features; 0 for a single patch.
  double other_places() const;

 private:
  double same_ = 0.0, others_ = 0.0;
  std::size_t num_same_ = 0, num_others_ = 0;
};

}  // namespace vit::app
