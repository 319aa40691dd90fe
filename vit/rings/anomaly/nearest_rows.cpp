#include "vit/rings/anomaly/nearest_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "vit/base/arena.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/rings/anomaly/group_search.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"nearest_rows", ErrorKind::argument};

// 64 x 1024 products are 256 KB: they stay in the L2 cache between the product and the search.
constexpr std::size_t kQueriesPerTask = 64;
constexpr std::size_t kRowsPerBlock = 1024;  // a multiple of every panel width

constexpr float kNone = -std::numeric_limits<float>::infinity();

void offer(const float* products, std::size_t first, std::size_t count, NearestRow& best) {
  if (largest_of(products, count) <= best.product) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (products[i] > best.product) best = {.row = first + i, .product = products[i]};
  }
}

/// All products of `queries` (n <= kQueriesPerTask, C).
void compare_all(const PackedRows& rows, TensorView<const float> queries, std::span<NearestRow> out,
                 RowRange left_out, Arena& memory) {
  TensorView<float> products;
  memory.lay_out([&](Arena::Taker& take) {
    products = take.take<float>(Shape{kQueriesPerTask, kRowsPerBlock});
  });
  for (std::size_t begin = 0; begin < rows.size(); begin += kRowsPerBlock) {
    const std::size_t end = std::min(begin + kRowsPerBlock, rows.size());
    rows.multiply(queries, begin, end, products.data(), kRowsPerBlock);
    const std::size_t skip_begin = std::clamp(left_out.begin, begin, end);
    const std::size_t skip_end = std::clamp(left_out.end, skip_begin, end);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float* const row = products.row(i) - begin;
      if (skip_begin > begin) offer(row + begin, begin, skip_begin - begin, out[i]);
      if (end > skip_end) offer(row + skip_end, skip_end, end - skip_end, out[i]);
    }
  }
}

/// Groups of rows that have short forms, or none.
std::unique_ptr<const RowGroups> grouped(TensorView<const float> rows, const kernels::LinearKernels& kernels,
                                         std::size_t grouped_from) {
  constexpr std::size_t kWorthShortening = 2 * RowSketch::kWidth;
  VIT_CHECK(!rows.empty() && rows.num_elements() > 0, kWhere, "no rows to search in");
  if (rows.num_rows() < grouped_from || rows.num_columns() < kWorthShortening ||
      rows.num_rows() > std::numeric_limits<std::uint32_t>::max())
    return nullptr;
  return std::make_unique<const RowGroups>(rows, kernels);
}

}  // namespace

NearestRows::NearestRows(TensorView<const float> rows, const kernels::LinearKernels& kernels,
                         std::size_t grouped_from)
    : groups_(grouped(rows, kernels, grouped_from)),
      packed_(rows, groups_ ? groups_->order() : std::span<const std::uint32_t>(), kernels) {}

void NearestRows::find(TensorView<const float> queries, std::span<NearestRow> out, RowRange left_out,
                       int threads) const {
  const std::size_t columns = packed_.num_columns();
  VIT_CHECK(queries.num_columns() == columns && out.size() == queries.num_rows(), kWhere, "rows ",
            queries.shape().to_string(), " cannot be compared with rows of ", columns, " features");
  VIT_CHECK(left_out.end - left_out.begin < size(), kWhere, "all ", size(), " rows are left out");
  // Of groups, more queries at once fill more of each tile.
  const auto share = ceil_div(out.size(), static_cast<std::size_t>(resolve_threads(threads)));
  const std::size_t at_once =
      groups_ ? std::clamp(share, kQueriesPerTask, GroupSearch::kMostQueries) : kQueriesPerTask;
  // A task has every num_tasks-th query: all have their share of those that need many products, which are
  // neighbors in an image.
  const std::size_t num_tasks = ceil_div(out.size(), at_once);
  // Not of the threads themselves: at their end, MinGW-w64 would destroy them after their storage is gone.
  std::vector<Arena> memories(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(num_tasks, threads, [&](std::size_t task, int thread) {
    Arena& memory = memories[static_cast<std::size_t>(thread)];
    const TensorView<const float> asked(queries.row(task),
                                        Shape{ceil_div(out.size() - task, num_tasks), columns},
                                        num_tasks * queries.row_stride());
    std::vector<NearestRow> found(asked.num_rows(), {.row = 0, .product = kNone});
    if (groups_) {
      GroupSearch(*groups_, packed_, asked, found, left_out, memory).run();
    } else {
      compare_all(packed_, asked, found, left_out, memory);
    }
    for (std::size_t i = 0; i < found.size(); ++i) out[task + i * num_tasks] = found[i];
  });
  VIT_CHECK(std::ranges::all_of(out, [](const NearestRow& r) { return std::isfinite(r.product); }), kWhere,
            "a row contains numbers that are not finite");
}

}  // namespace vit::internal
