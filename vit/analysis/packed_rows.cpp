#include "vit/analysis/packed_rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr std::size_t kRowsPerTask = 256;  // a multiple of every panel width
constexpr std::size_t kLanes = 16;

}  // namespace

PackedRows::PackedRows(TensorView<const float> rows, std::span<const std::uint32_t> order,
                       const kernels::LinearKernels& kernels)
    : kernels_(&kernels), size_(rows.num_rows()), columns_(rows.num_columns()) {
  VIT_CHECK(kernels.convert_rows == nullptr && 32 % kernels.panel_columns == 0, "PackedRows",
            "kernels of another layout: ", kernels.description);
  panels_ = Tensor<std::byte>(Shape{kernels.packed_bytes(round_up(size_, kernels.panel_columns), columns_)});
  parallel_for_parts(size_, kRowsPerTask, 0, [&](std::size_t first, std::size_t count) {
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

/// Independent maxima for the vector registers, then the largest of those.
float largest_of(const float* numbers, std::size_t count) {
  std::array<float, kLanes> best;
  best.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) best[l] = numbers[i + l] > best[l] ? numbers[i + l] : best[l];
  }
  for (; i < count; ++i) best[0] = numbers[i] > best[0] ? numbers[i] : best[0];
  return *std::ranges::max_element(best);
}

}  // namespace vit::internal
