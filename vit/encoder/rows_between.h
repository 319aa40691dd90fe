// RowsBetween: position rows that are added to all tokens after a block. Letters: B images, T tokens, C =
// embed_dim.
#pragma once

#include "vit/base/parallel.h"
#include "vit/encoder/block_hook.h"
#include "vit/position/position.h"

namespace vit::internal {

class RowsBetween final : public BlockHook {
 public:
  RowsBetween(const PositionContext& position, int threads) : position_(position), threads_(threads) {}

  /// x (B * T, C) += rows (T, C) of every image.
  void after(std::size_t layer, TensorView<float> x) override {
    const TensorView<const float> rows = position_.rows_after(layer);
    if (rows.empty()) return;
    parallel_for(x.num_rows(), threads_, [&](std::size_t row, int) {
      const float* const from = rows.row(row % rows.num_rows());
      float* const to = x.row(row);
      for (std::size_t c = 0; c < x.num_columns(); ++c) to[c] += from[c];
    });
  }

 private:
  const PositionContext& position_;
  int threads_;
};

}  // namespace vit::internal
