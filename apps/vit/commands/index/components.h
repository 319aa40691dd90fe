// Groups of similar vectors: connected components of the pairs above a cosine. Letters: n vectors, d
// numbers of each.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::app {

/// The connected components, of two vectors or more, of the graph that joins rows of `vectors` (n, d), each
/// of length 1, whose cosine is at least `threshold`. Members in ascending order, components by their first
/// member. Memory is linear in n: cosines are computed in blocks. `threads`: 0 = all.
std::vector<std::vector<std::size_t>> connected_components(TensorView<const float> vectors, double threshold,
                                                           int threads);

}  // namespace vit::app
