#include "vit/analysis/nearest_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"nearest_rows", ErrorKind::argument};

// 64 x 1024 products are 256 KB: they stay in the second-level cache between the product and the search.
constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kRowsPerBlock = 1024;  // a multiple of every panel width
constexpr std::size_t kLanes = 16;

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// The largest of `count` products: independent maxima for the vector registers, then the largest of those.
float largest(const float* products, std::size_t count) {
  std::array<float, kLanes> best;
  best.fill(kNone);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) best[l] = products[i + l] > best[l] ? products[i + l] : best[l];
  }
  for (; i < count; ++i) best[0] = products[i] > best[0] ? products[i] : best[0];
  return *std::ranges::max_element(best);
}

void offer(const float* products, std::size_t first, std::size_t count, NearestRow& best) {
  const float value = largest(products, count);
  if (value <= best.product) return;
  best = {.row = first + static_cast<std::size_t>(std::find(products, products + count, value) - products),
          .product = value};
}

}  // namespace

NearestRows::NearestRows(TensorView<const float> rows, const kernels::LinearKernels& kernels)
    : packed_(rows, kernels) {}

void NearestRows::find(TensorView<const float> queries, std::span<NearestRow> out, RowRange left_out,
                       int threads) const {
  const std::size_t columns = packed_.in_features();
  VIT_CHECK(queries.num_columns() == columns && out.size() == queries.num_rows(), kWhere, "rows ",
            queries.shape().to_string(), " cannot be compared with rows of ", columns, " features");
  VIT_CHECK(left_out.end - left_out.begin < size(), kWhere, "all ", size(), " rows are left out");
  const kernels::LinearKernels& kernels = packed_.kernels();
  parallel_for_parts(queries.num_rows(), kQueriesPerTask, threads, [&](std::size_t first, std::size_t count) {
    thread_local Tensor<float> products(Shape{kQueriesPerTask, kRowsPerBlock});
    for (std::size_t i = 0; i < count; ++i) out[first + i] = {.row = 0, .product = kNone};
    for (std::size_t begin = 0; begin < size(); begin += kRowsPerBlock) {
      const std::size_t end = std::min(begin + kRowsPerBlock, size());
      kernels.gemm({.in = reinterpret_cast<const std::byte*>(queries.row(first)),
                    .in_step = queries.row_stride() * sizeof(float),
                    .rows = count,
                    .packed = packed_.data(),
                    .in_features = columns,
                    .column_begin = begin,
                    .column_end = end,
                    .out = products.data() - begin,
                    .out_stride = kRowsPerBlock});
      const std::size_t skip_begin = std::clamp(left_out.begin, begin, end);
      const std::size_t skip_end = std::clamp(left_out.end, skip_begin, end);
      for (std::size_t i = 0; i < count; ++i) {
        const float* const row = products.view().row(i) - begin;
        if (skip_begin > begin) offer(row + begin, begin, skip_begin - begin, out[first + i]);
        if (end > skip_end) offer(row + skip_end, skip_end, end - skip_end, out[first + i]);
      }
    }
  });
  VIT_CHECK(std::ranges::all_of(out, [](const NearestRow& r) { return std::isfinite(r.product); }), kWhere,
            "a row holds numbers that are not finite");
}

}  // namespace vit::internal
