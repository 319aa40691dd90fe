// Sine codes of positions, y before x, computed in double precision. Letters: D channels.
#pragma once

#include <cstddef>
#include <span>

#include "vit/base/tensor.h"

namespace vit::internal {

/// (rows * columns, D): channels of y, then of x, D / 2 each; rows and columns are counted from 1 and divided
/// by their number.
Tensor<float> sine_code_of_map(std::size_t rows, std::size_t columns, std::size_t dim);

/// The code of one number, 0 to 1 as a whole period of the first frequency: sine and cosine in turn.
void sine_code_of_value(double value, std::span<float> code);

}  // namespace vit::internal
