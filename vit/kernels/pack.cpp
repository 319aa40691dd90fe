#include "vit/kernels/pack.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "vit/base/parallel.h"

namespace vit::internal::kernels {
namespace {

constexpr std::size_t kColumnsPerTask = 256;  // a multiple of every panel width

/// Writes q[k] = round(row[k] / scale) and returns the scale, the smallest for which no |q[k]| is above 127
/// and no |q[2i] + q[2i + 1]| above pair_largest. Numbers that are all below 1e-30 count as zero.
float quantise_group(std::span<const float> row, int pair_largest, std::int8_t* q) {
  float largest = 0.0f, largest_half_sum = 0.0f;
  bool is_finite = true;
  for (std::size_t k = 0; k < row.size(); ++k) {
    largest = std::max(largest, std::fabs(row[k]));
    is_finite = is_finite && std::isfinite(row[k]);
    if (k % 2 == 1) largest_half_sum = std::max(largest_half_sum, std::fabs(row[k - 1] / 2 + row[k] / 2));
  }
  VIT_CHECK(is_finite, "PackedInt8Matrix", "a weight that is not finite cannot be quantised");
  // Both of a pair may be rounded away from 0, by a half.
  const float scale =
      std::max(largest / 127.0f, largest_half_sum / (0.5f * static_cast<float>(pair_largest - 1)));
  const float factor = largest < 1e-30f ? 0.0f : 1.0f / scale;
  for (std::size_t k = 0; k < row.size(); ++k)
    q[k] = static_cast<std::int8_t>(std::nearbyint(row[k] * factor));
  return factor == 0.0f ? 0.0f : scale;
}

}  // namespace

PackedWeight::PackedWeight(const TensorView<const float>& weight, const KernelTable& table, const char* where)
    : table_(&table) {
  VIT_CHECK(weight.rank() == 2, where, "a weight has the shape (out, in), got ", weight.shape().to_string());
  VIT_CHECK(weight.dim(0) > 0 && weight.dim(1) > 0, where, "empty weight ", weight.shape().to_string());
  out_features_ = weight.dim(0);
  in_features_ = weight.dim(1);
}

PackedMatrix::PackedMatrix(TensorView<const float> weight, const KernelTable& table)
    : PackedWeight(weight, table, "PackedMatrix"), panels_(Shape{padded_columns(), in_features()}) {
  parallel_for_parts(out_features(), kColumnsPerTask, 0, [&](std::size_t first, std::size_t count) {
    table.pack_weight(weight.row(first), weight.row_stride(), count, in_features(),
                      panels_.data() + first * in_features());
  });
}

PackedBf16Matrix::PackedBf16Matrix(TensorView<const float> weight, const KernelTable& table)
    : PackedWeight(weight, table, "PackedBf16Matrix"),
      panels_(Shape{table.bf16->packed_lanes(padded_columns(), in_features())}) {
  const Bf16Kernels& bf16 = *table.bf16;
  parallel_for_parts(out_features(), kColumnsPerTask, 0, [&](std::size_t first, std::size_t count) {
    bf16.pack_weight(weight.row(first), weight.row_stride(), count, in_features(),
                     panels_.data() + bf16.packed_lanes(first, in_features()));
  });
}

PackedInt8Matrix::PackedInt8Matrix(TensorView<const float> weight, const KernelTable& table)
    : PackedWeight(weight, table, "PackedInt8Matrix"),
      panels_(Shape{table.int8->packed_bytes(padded_columns(), in_features())}) {
  const Int8Kernels& int8 = *table.int8;
  parallel_for_parts(out_features(), kColumnsPerTask, 0, [&](std::size_t first, std::size_t count) {
    std::vector<std::int8_t> whole(count * in_features());
    std::vector<float> scales;  // (count, groups)
    for (std::size_t n = 0; n < count; ++n) {
      const std::span<const float> row(weight.row(first + n), in_features());
      for (std::size_t k = 0; k < in_features(); k += kInt8Group) {
        const auto group = row.subspan(k, std::min(kInt8Group, in_features() - k));
        scales.push_back(quantise_group(group, int8.pair_largest, &whole[n * in_features() + k]));
      }
    }
    int8.pack({.weight = whole.data(),
               .scales = scales.data(),
               .out_features = count,
               .in_features = in_features(),
               .packed = panels_.data() + int8.packed_bytes(first, in_features())});
  });
}

}  // namespace vit::internal::kernels
