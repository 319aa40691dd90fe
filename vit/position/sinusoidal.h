// Fixed sine-cosine rows that are added to tokens, in one and two dimensions.
#pragma once

#include <cstddef>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config.h"

namespace vit::position {

/// (length, dim) rows: channel 2i is sin(t base^(-2i/dim)), channel 2i + 1 its cosine (Vaswani et al. 2017).
/// T is double or float, rounded once from double. Throws Error if 2 does not divide dim, or base is not
/// positive.
template <typename T>
VIT_API Tensor<T> sinusoidal_1d(std::size_t length, std::size_t dim, double base = 10000.0);

/// (N, dim) rows of a grid, row-major: the first half of the channels is the one-dimensional row of width
/// dim / 2 for the column, the second half that for the row of the patch. Throws Error if 4 does not
/// divide dim.
template <typename T>
VIT_API Tensor<T> sinusoidal_2d(GridSize grid, std::size_t dim, double base = 10000.0);

/// (N, dim) rows of a grid in quarters, as big_vision and vit-pytorch's SimpleViT have them: sines of the
/// column, cosines of the column, sines of the row, cosines of the row, each of the F = dim / 4 angles
/// index * base^(-k / (F - 1)). Throws Error if 4 does not divide dim or base is less than 1.
template <typename T>
VIT_API Tensor<T> sinusoidal_2d_quarters(GridSize grid, std::size_t dim, double base = 10000.0);

}  // namespace vit::position
