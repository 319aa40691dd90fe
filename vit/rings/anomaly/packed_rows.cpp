#include "vit/rings/anomaly/packed_rows.h"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr std::size_t kRowsPerTask = 256;  // a multiple of every panel width
constexpr int kLanes = 16;

}  // namespace

PackedRows::PackedRows(TensorView<const float> rows, std::span<const std::uint32_t> order,
                       const kernels::LinearKernels& kernels, int threads)
    : kernels_(&kernels), size_(rows.num_rows()), columns_(rows.num_columns()) {
  VIT_CHECK(kernels.convert_rows == nullptr && 32 % kernels.panel_columns == 0, "PackedRows",
            "kernels of another layout: ", kernels.description);
  panels_ = Tensor<std::byte>(Shape{kernels.packed_bytes(round_up(size_, kernels.panel_columns), columns_)});
  parallel_for_parts(size_, kRowsPerTask, threads, [&](std::size_t first, std::size_t count) {
    TensorView<const float> part = rows.part(first, count);
    Tensor<float> gathered;
    if (!order.empty()) {
      gathered = Tensor<float>(Shape{count, columns_});
      for (std::size_t i = 0; i < count; ++i)
        std::copy_n(rows.row(order[first + i]), columns_, gathered.view().row(i));
      part = gathered;
    }
    kernels.pack({.weight = part.data(),
                  .stride = part.row_stride(),
                  .out_features = count,
                  .in_features = columns_,
                  .packed = panels_.data() + kernels.packed_bytes(first, columns_)});
  });
}

void PackedRows::multiply(TensorView<const float> queries, std::size_t begin, std::size_t end, float* out,
                          std::size_t stride) const {
  kernels_->gemm({.in = reinterpret_cast<const std::byte*>(queries.data()),
                  .in_step = queries.row_stride() * sizeof(float),
                  .rows = queries.num_rows(),
                  .packed = panels_.data(),
                  .in_features = columns_,
                  .column_begin = begin,
                  .column_end = end,
                  .out = out - begin,
                  .out_stride = stride});
}

float largest_of(const float* numbers, std::size_t count) {
  using Lanes = Eigen::Array<float, kLanes, 1>;
  Lanes best = Lanes::Constant(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) best = best.max(Eigen::Map<const Lanes>(numbers + i));
  float largest = best.maxCoeff();
  for (; i < count; ++i) largest = numbers[i] > largest ? numbers[i] : largest;
  return largest;
}

}  // namespace vit::internal
