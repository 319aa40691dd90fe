// Exact search: all vectors once, compared with all queries. The loop of the program whose speed counts: it
// is built for speed, the rest of the program is not.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/vit/commands/index/stored_vectors.h"

namespace vit::app {

/// A vector found: its place in the index and its inner product with the query.
struct Hit {
  std::size_t index = 0;
  float score = 0;
};

/// Sorts the best `top` to the front, of equal ones the first, and drops the others.
void keep_best(std::vector<Hit>& hits, std::size_t top);

/// Sum of a[i] b[i] in float32. The order of the sums is fixed, so that scores do not depend on the machine.
float inner_product(const float* a, const float* b, std::size_t count);

/// For each query (C) the `top` vectors with the largest inner product, best first, of equal ones the first.
/// Reads the vectors once, some hundred KB of them in each thread. Throws Error for a query of another
/// length, and for vectors that are not finite. `threads`: 0 = all.
std::vector<std::vector<Hit>> scan(const StoredVectors& vectors,
                                   std::span<const std::span<const float>> queries, std::size_t top,
                                   int threads);

}  // namespace vit::app
