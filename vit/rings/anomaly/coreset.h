// A few rows that represent many: greedy k-center, the coreset of PatchCore (Roth et al. 2022; Gonzalez
// 1985).
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::internal {

/// Indices, in increasing order, of `count` of the rows (n, C) of length 1: the row farthest from the mean,
/// then repeatedly the row farthest from those chosen so far (ties: the first). After k rows no
/// row is farther from its nearest chosen one than twice the optimum for k rows. Rows that cannot
/// be closer to a new center, by the triangle inequality, are not compared with it: the result is exact.
/// Takes 16 bytes per row. `threads`: 0 = all; the result does not depend on it.
std::vector<std::size_t> choose_coreset(TensorView<const float> rows, std::size_t count, int threads);

}  // namespace vit::internal
