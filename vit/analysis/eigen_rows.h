// Rows and sizes as Eigen has them.
#pragma once

#include <Eigen/Core>
#include <cstddef>

#include "vit/base/tensor.h"

namespace vit::internal {

inline Eigen::Index index(std::size_t i) {
  return static_cast<Eigen::Index>(i);
}

/// Row `i` of rows (n, C) as a vector (C).
inline Eigen::Map<const Eigen::VectorXf> map_row(TensorView<const float> rows, std::size_t i) {
  return {rows.row(i), index(rows.num_columns())};
}

}  // namespace vit::internal
