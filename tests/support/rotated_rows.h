// Rows of one head rotated as a kernel table does it.
#pragma once

#include <vector>

#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::test {

/// rows (T, d), rotated: float32 attention keeps keys so.
inline std::vector<float> rotated_rows(const internal::kernels::KernelTable& table,
                                       const TensorView<const float>& rows,
                                       const internal::kernels::Rotation& rotation) {
  const internal::kernels::AttentionKernels& attention = table.float32->attention;
  const std::size_t tokens = rows.num_rows(), d = rows.num_columns();
  Tensor<float> packed(Shape{attention.packed_floats(tokens, d)}),
      scratch(Shape{attention.scratch_floats(d)});
  attention.pack({.keys = rows.data(),
                  .key_stride = rows.row_stride(),
                  .values = rows.data(),
                  .value_stride = rows.row_stride(),
                  .num_tokens = tokens,
                  .last_token = tokens,
                  .head_dim = d,
                  .rotation = rotation,
                  .packed = packed.data(),
                  .scratch = scratch.data()});
  return {packed.data(), packed.data() + tokens * d};
}

}  // namespace vit::test
