#include "vit/kernels/pack.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vit/base/parallel.h"

namespace vit::kernels {
namespace {

constexpr std::size_t kColumnsPerTask = 256;  // a multiple of every panel width

void check_weight(const TensorView<const float>& weight, const char* where) {
  VIT_CHECK(weight.rank() == 2, where, "a weight has the shape (out, in), got ", weight.shape().to_string());
  VIT_CHECK(weight.size(0) > 0 && weight.size(1) > 0, where, "empty weight ", weight.shape().to_string());
}

/// Writes q[k] = round(row[k] / scale) and returns the scale.
float quantise_column(const float* row, std::size_t in_features, std::int8_t* q) {
  float largest = 0.0f;
  bool is_finite = true;
  for (std::size_t k = 0; k < in_features; ++k) {
    largest = std::max(largest, std::fabs(row[k]));
    is_finite = is_finite && std::isfinite(row[k]);
  }
  VIT_CHECK(is_finite, "PackedInt8Matrix", "a weight that is not finite cannot be quantised");
  const float factor = largest < 1e-30f ? 0.0f : 127.0f / largest;
  for (std::size_t k = 0; k < in_features; ++k)
    q[k] = static_cast<std::int8_t>(std::nearbyint(row[k] * factor));
  return factor == 0.0f ? 0.0f : largest / 127.0f;
}

}  // namespace

PackedMatrix::PackedMatrix(TensorView<const float> weight, const KernelTable& table) : table_(&table) {
  check_weight(weight, "PackedMatrix");
  out_features_ = weight.size(0);
  in_features_ = weight.size(1);
  const std::size_t padded = round_up(out_features_, table.panel_columns);
  panels_ = Tensor<float>(Shape{padded, in_features_});
  parallel_for(ceil_div(out_features_, kColumnsPerTask), 0, [&](std::size_t task, int) {
    const std::size_t first = task * kColumnsPerTask;
    table.pack_weight(weight.row(first), weight.row_stride(),
                      std::min(kColumnsPerTask, out_features_ - first), in_features_,
                      panels_.data() + first * in_features_);
  });
}

PackedBf16Matrix::PackedBf16Matrix(TensorView<const float> weight, const KernelTable& table)
    : table_(&table) {
  check_weight(weight, "PackedBf16Matrix");
  out_features_ = weight.size(0);
  in_features_ = weight.size(1);
  const Bf16Kernels& bf16 = *table.bf16;
  const std::size_t padded = round_up(out_features_, table.panel_columns);
  panels_ = Tensor<float>(Shape{bf16.packed_lanes(padded, in_features_)});
  parallel_for(ceil_div(out_features_, kColumnsPerTask), 0, [&](std::size_t task, int) {
    const std::size_t first = task * kColumnsPerTask;
    bf16.pack_weight(weight.row(first), weight.row_stride(), std::min(kColumnsPerTask, out_features_ - first),
                     in_features_, panels_.data() + bf16.packed_lanes(first, in_features_));
  });
}

PackedInt8Matrix::PackedInt8Matrix(TensorView<const float> weight, const KernelTable& table)
    : table_(&table) {
  check_weight(weight, "PackedInt8Matrix");
  out_features_ = weight.size(0);
  in_features_ = weight.size(1);
  const Int8Kernels& int8 = *table.int8;
  const std::size_t padded = round_up(out_features_, table.panel_columns);
  panels_ = Tensor<std::byte>(Shape{int8.packed_bytes(padded, in_features_)});
  scales_ = Tensor<float>(Shape{padded});
  parallel_for(ceil_div(out_features_, kColumnsPerTask), 0, [&](std::size_t task, int) {
    const std::size_t first = task * kColumnsPerTask;
    const std::size_t count = std::min(kColumnsPerTask, out_features_ - first);
    std::vector<std::int8_t> whole(count * in_features_);
    for (std::size_t n = 0; n < count; ++n) {
      scales_.data()[first + n] =
          quantise_column(weight.row(first + n), in_features_, whole.data() + n * in_features_);
    }
    int8.pack(whole.data(), count, in_features_, panels_.data() + int8.packed_bytes(first, in_features_));
  });
}

}  // namespace vit::kernels
