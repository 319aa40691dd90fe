// Mean and standard deviation of features, and rows scaled to mean 0 and deviation 1.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::internal {

/// The values of scikit-learn's StandardScaler: constant columns have a scale of 1.
struct Standardization {
  std::vector<double> mean;   // (C)
  std::vector<double> scale;  // (C), deviation with divisor n

  /// (row - mean) / scale; `row` and `out` (C).
  void apply(const float* row, double* out) const;
};

/// Standardization of features (n, C), n > 0.
Standardization standardization_of(TensorView<const float> features);
/// Mean 0 and scale 1: of features that are taken as they are.
Standardization no_standardization(std::size_t num_features);

}  // namespace vit::internal
