#include "vit/layers/gemm_tasks.h"

#include <algorithm>

#include "vit/base/checked.h"

namespace vit::internal {
namespace {

/// Panels of a task, if rows are divided into so many blocks: the tasks should outnumber the threads several
/// times so that a slow core does not delay the others.
std::size_t panels_per_task(const GemmShape& shape, std::size_t panels, std::size_t row_blocks) {
  constexpr std::size_t kTasksPerThread = 32;
  const std::size_t wanted = ceil_div(kTasksPerThread * shape.threads, row_blocks) * shape.products;
  return ceil_div(panels, std::min(wanted, panels));
}

/// When the last thread is done, in rows of a panel. A panel of a task takes as long as some more rows, for
/// its weight, which has to come from a cache farther away, and for a last tile that is not full.
std::size_t end_of_last(const GemmShape& shape, std::size_t panels, std::size_t row_blocks) {
  constexpr std::size_t kRowsOfWeight = 6, kRowsOfRest = 3;
  const std::size_t per_task = panels_per_task(shape, panels, row_blocks);
  const std::size_t tasks = row_blocks * ceil_div(panels, per_task);
  const std::size_t rows = ceil_div(shape.rows, row_blocks);
  const std::size_t rest = rows % shape.tile_rows != 0 ? kRowsOfRest : 0;
  return ceil_div(tasks, shape.threads) * per_task * (rows + rest + kRowsOfWeight);
}

/// `fewest` blocks of rows, or more, up to the number of threads, if these then end earlier: three blocks of
/// 66 rows and 18 panels occupy 16 threads for four tasks of 75, two blocks of 99 rows for three of 108.
std::size_t balanced_blocks(const GemmShape& shape, std::size_t panels, std::size_t fewest) {
  const std::size_t most = std::min(ceil_div(shape.rows, shape.tile_rows), shape.threads);
  std::size_t best = fewest, least = end_of_last(shape, panels, fewest);
  for (std::size_t blocks = fewest + 1; blocks <= most; ++blocks) {
    const std::size_t end = end_of_last(shape, panels, blocks);
    if (20 * end >= 19 * least) continue;  // smaller tasks are worth a twentieth of the time or more
    best = blocks;
    least = end;
  }
  return best;
}

}  // namespace

GemmTasks::GemmTasks(const GemmShape& shape) : rows_(shape.rows), outputs_(shape.outputs) {
  // A block of rows should stay in the L2 cache while the weight streams past it.
  constexpr std::size_t kRowsInCache = 108, kFewRows = 48;
  const std::size_t columns = outputs_.end - outputs_.begin;
  const std::size_t panels = ceil_div(columns, shape.panel_columns);
  row_blocks_ = ceil_div(rows_, kRowsInCache);
  const std::size_t even = round_up(row_blocks_, shape.threads);
  if (row_blocks_ < shape.threads) {
    row_blocks_ = balanced_blocks(shape, panels, row_blocks_);
  } else if (rows_ / even >= kFewRows) {
    row_blocks_ = even;
  }
  parts_ = std::min(row_blocks_, shape.threads);
  if (row_blocks_ > parts_) row_unit_ = shape.tile_rows;
  columns_per_task_ = panels_per_task(shape, panels, row_blocks_) * shape.panel_columns;
  column_blocks_ = ceil_div(columns, columns_per_task_);
}

GemmTask GemmTasks::operator[](std::size_t task) const {
  const std::size_t part = (task / column_blocks_ * parts_ + parts_ - 1) / row_blocks_;
  const std::size_t first = first_block(part);
  const std::size_t blocks = first_block(part + 1) - first;
  const std::size_t within = task - first * column_blocks_;
  const std::size_t row_block = first + within % blocks;
  const std::size_t row = first_row(row_block);
  const std::size_t column = outputs_.begin + within / blocks * columns_per_task_;
  return {row, first_row(row_block + 1) - row, column, std::min(column + columns_per_task_, outputs_.end)};
}

std::size_t GemmTasks::first_row(std::size_t block) const {
  return std::min(block * ceil_div(rows_, row_unit_) / row_blocks_ * row_unit_, rows_);
}

}  // namespace vit::internal
