#include "vit/kernels/pack.h"

#include <algorithm>

#include "vit/base/parallel.h"

namespace vit::kernels {

PackedMatrix::PackedMatrix(TensorView<const float> weight, const KernelTable& table) : table_(&table) {
  VIT_CHECK(weight.rank() == 2, "PackedMatrix", "a weight has the shape (out, in), got ",
            weight.shape().to_string());
  out_features_ = weight.size(0);
  in_features_ = weight.size(1);
  VIT_CHECK(out_features_ > 0 && in_features_ > 0, "PackedMatrix", "empty weight ",
            weight.shape().to_string());
  const std::size_t padded = round_up(out_features_, table.panel_columns);
  panels_ = Tensor<float>(Shape{padded, in_features_});
  constexpr std::size_t kColumnsPerTask = 256;  // a multiple of every panel width
  parallel_for(ceil_div(out_features_, kColumnsPerTask), 0, [&](std::size_t task, int) {
    const std::size_t first = task * kColumnsPerTask;
    table.pack_weight(weight.row(first), weight.row_stride(),
                      std::min(kColumnsPerTask, out_features_ - first), in_features_,
                      panels_.data() + first * in_features_);
  });
}

}  // namespace vit::kernels
