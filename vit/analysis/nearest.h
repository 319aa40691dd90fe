// Which rows of two sets of features belong together: mutual nearest neighbors by cosine.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Row `first` of one set and row `second` of another, each the nearest of its set to the other.
struct NearestPair {
  std::size_t first = 0;
  std::size_t second = 0;
  double cosine = 0;
};

/// Pairs of rows of a (..., C) and b (..., C), each of which has the largest cosine with the other among its
/// set, in the order of a. Of equal cosines the first row counts; the cosine with a zero row is 0. Cosines
/// are computed in double, in blocks: memory is linear in the rows. `threads`: 0 = all; the result does not
/// depend on it. Throws Error if the widths differ or a set is empty.
VIT_API std::vector<NearestPair> mutual_nearest(TensorView<const float> a, TensorView<const float> b,
                                                int threads = 0);

}  // namespace vit
