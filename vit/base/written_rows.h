// Rows that a function writes into memory of the caller.
#pragma once

#include "vit/base/check.h"
#include "vit/base/tensor.h"

namespace vit::internal {

/// Throws Error if rows of results overlap: they start at least a row apart.
template <typename T>
void check_rows_apart(const TensorView<T>& out, const Where& where) {
  VIT_CHECK(out.num_rows() <= 1 || out.row_stride() >= out.num_columns(), where, "rows of ",
            out.num_columns(), " to write lie ", out.row_stride(), " apart");
}

}  // namespace vit::internal
