// How alike the patch features of an image and of its enlarged self are: a measure of what a model does at
// another size that needs no labels. Computing the features is left to the command.
// Letters: h, w = patches per column and row, C = channels.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/config.h"

namespace vit::app {

/// (h, w, C): features of another grid of the same image, (h', w', C), averaged over the area of each patch
/// of `grid`, by the overlap of their areas; in double.
Tensor<double> averaged_patches(TensorView<const float> patches, GridSize grid);

/// Means over all patches of all images.
class ScaleConsistency {
 public:
  /// `trained` (h, w, C) at the first size, `other` (h', w', C) at another. Throws Error if C differs.
  void add(TensorView<const float> trained, TensorView<const float> other);

  /// Cosine between a patch and what lies at its place in the other image; 1 where the size changes nothing.
  double same_place() const;
  /// Cosine between patches at different places: what features have in common anyway; 0 of a single patch.
  double other_places() const;

 private:
  double same_ = 0.0, others_ = 0.0;
  std::size_t num_same_ = 0, num_others_ = 0;
};

}  // namespace vit::app
