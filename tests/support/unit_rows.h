// Rows as patch features are: of length 1, around a few directions.
#pragma once

#include "tests/support/rng.h"
#include "vit/outputs.h"

namespace vit::test {

/// Rows (rows, columns) of length 1 around seven directions, from which they differ by `spread` in each
/// column before.
inline Tensor<float> unit_rows(std::size_t rows, std::size_t columns, unsigned seed, float spread = 0.3f) {
  Rng rng(seed);
  Tensor<float> out(Shape{rows, columns});
  const Tensor<float> directions = rng.tensor(Shape{7, columns});
  for (std::size_t i = 0; i < rows; ++i) {
    float* const row = out.view().row(i);
    for (std::size_t c = 0; c < columns; ++c)
      row[c] = directions.view().row(i % 7)[c] + spread * rng.normal();
    normalize_vector({row, columns});
  }
  return out;
}

}  // namespace vit::test
