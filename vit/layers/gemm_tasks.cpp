#include "vit/layers/gemm_tasks.h"

#include <algorithm>

#include "vit/base/checked.h"

namespace vit::internal {

GemmTasks::GemmTasks(const GemmShape& shape) : rows_(shape.rows), outputs_(shape.outputs) {
  // A block of rows should stay in the L2 cache while the weight streams past it; the tasks should
  // outnumber the threads several times so that a slow core does not delay the others.
  constexpr std::size_t kRowsInCache = 108, kFewRows = 48;
  constexpr std::size_t kTasksPerThread = 32;
  row_blocks_ = ceil_div(rows_, kRowsInCache);
  const std::size_t even = round_up(row_blocks_, shape.threads);
  if (rows_ / even >= kFewRows) row_blocks_ = even;
  parts_ = std::min(row_blocks_, shape.threads);
  if (row_blocks_ > parts_) row_unit_ = shape.tile_rows;
  const std::size_t columns = outputs_.end - outputs_.begin;
  const std::size_t panels = ceil_div(columns, shape.panel_columns);
  const std::size_t wanted = ceil_div(kTasksPerThread * shape.threads, row_blocks_) * shape.products;
  columns_per_task_ = ceil_div(panels, std::min(wanted, panels)) * shape.panel_columns;
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
