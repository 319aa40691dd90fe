// Exact search: reads all vectors once, compares them with all queries. The only hot loop of the program: it
// is compiled for speed, the rest of the program is not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/vit/rings/index/stored_vectors.h"

namespace vit::app {

/// A vector found: its position in the index and its inner product with the query.
struct Hit {
  std::size_t index = 0;
  float score = 0;
};

/// Sorts the best `top` to the front, ties in index order, and drops the others.
void keep_best(std::vector<Hit>& hits, std::size_t top);

/// Sum of a[i] b[i] in float32. The order of the sums is fixed, so that scores do not depend on the machine.
float inner_product(const float* a, const float* b, std::size_t count);

/// For each query (C) the `top` vectors with the largest inner product, best first; ties in index order.
/// Reads the vectors once, a few hundred KB at a time in each thread. Throws Error for a query of another
/// length, and for vectors that are not finite. `threads`: 0 = all.
std::vector<std::vector<Hit>> scan(const StoredVectors& vectors,
                                   std::span<const std::span<const float>> queries, std::size_t top,
                                   int threads);

}  // namespace vit::app
