#include "vit/position/added_rows.h"

#include <algorithm>
#include <span>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/position/coordinates.h"
#include "vit/position/tables.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kRows{"Position", ErrorKind::mismatch};

Tensor<float> copy_rows(TensorView<const float> rows, std::size_t begin, std::size_t end) {
  Tensor<float> copy(Shape{end - begin, rows.num_columns()});
  for (std::size_t r = begin; r < end; ++r) {
    std::copy_n(rows.row(r), rows.num_columns(), copy.data() + (r - begin) * rows.num_columns());
  }
  return copy;
}

/// The rows (N, C) of patches in raster order, reordered to the sequence.
Tensor<float> in_order(TensorView<const float> rows, std::span<const std::uint32_t> patches) {
  Tensor<float> out(rows.shape());
  for (std::size_t i = 0; i < patches.size(); ++i)
    std::copy_n(rows.row(patches[i]), rows.num_columns(), out.data() + i * rows.num_columns());
  return out;
}

/// Of the rows of a square grid with `edge` patches to a side those of its top left part.
Tensor<float> top_left(TensorView<const float> rows, std::size_t edge, GridSize grid) {
  Tensor<float> out(Shape{num_patches(grid), rows.num_columns()});
  for (std::size_t patch = 0; patch < num_patches(grid); ++patch) {
    const std::size_t from = patch / grid.columns * edge + patch % grid.columns;
    std::copy_n(rows.row(from), rows.num_columns(), out.data() + patch * rows.num_columns());
  }
  return out;
}

}  // namespace

AddedRows::AddedRows(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights)
    : config_(config) {
  VIT_CHECK((config.added == AddedTable::none) == weights.added_table.empty(), kRows,
            config.added == AddedTable::none ? "the config adds no learned table, but one of shape "
                                             : "the config adds a learned table, but it has shape ",
            weights.added_table.shape().to_string());
  if (config.added != AddedTable::none) load_table(weights.added_table, shape.embed_dim);
  VIT_CHECK(config.between_blocks == !weights.between_tables.empty(), kRows, "tables between blocks ",
            weights.between_tables.shape().to_string(),
            config.between_blocks ? ", expected some" : " although the config does not use them");
  if (config.between_blocks) load_between(weights.between_tables, shape);
}

void AddedRows::load_table(TensorView<const float> table, std::size_t embed_dim) {
  if (config_.added == AddedTable::columns_and_rows) {
    const Shape expected{2, config_.added_grid.rows, embed_dim};
    VIT_CHECK(table.shape() == expected, kRows, "tables of columns and rows ", table.shape().to_string(),
              ", expected ", expected.to_string());
    table_ = Tensor<float>(expected);
    std::ranges::copy(table.flat(), table_.data());
    return;
  }
  const std::size_t num_native =
      num_patches(config_.added_grid) * std::max<std::size_t>(config_.added_steps, 1);
  const bool with_prefix = config_.added == AddedTable::prefix_and_patches;
  const bool fits = table.rank() == 2 && table.num_columns() == embed_dim &&
                    (with_prefix ? table.dim(0) > num_native : table.dim(0) == num_native);
  VIT_CHECK(fits, kRows, "learned table ", table.shape().to_string(), ", expected ",
            with_prefix ? "(prefix + " : "(", num_native, ", ", embed_dim, ") for a grid of ",
            position::to_string(config_.added_grid));
  num_prefix_rows_ = table.dim(0) - num_native;
  table_ = copy_rows(table, 0, table.dim(0));
}

void AddedRows::load_between(TensorView<const float> tables, const PositionShape& shape) {
  const Shape expected{shape.depth - 1, table_.dim(0), shape.embed_dim};
  VIT_CHECK(num_prefix_rows_ == shape.num_prefix && tables.shape() == expected, kRows,
            "tables between blocks ", tables.shape().to_string(), ", expected ", expected.to_string(),
            " with rows for all ", shape.num_prefix, " prefix tokens");
  for (std::size_t layer = 0; layer + 1 < shape.depth; ++layer)
    between_.push_back(copy_rows(tables[layer], 0, table_.dim(0)));
}

/// The table (p + N, C) for another grid than its own; a copy for its own.
Tensor<float> AddedRows::resampled(TensorView<const float> table, GridSize grid) const {
  if (is_reused(config_.added_grid, grid, config_.reuse)) return copy_rows(table, 0, table.dim(0));
  return resample_table(table, num_prefix_rows_, config_.added_grid, grid, config_.resampling);
}

/// The tables of columns and of rows (2, longest, C) for another grid; rows beyond the shorter are zero.
Tensor<float> AddedRows::resampled_axes(GridSize grid) const {
  const std::size_t longest = std::max(grid.rows, grid.columns), length = table_.dim(1);
  const bool is_square = config_.table_grid == TableGrid::square;
  const std::size_t lengths[] = {is_square ? longest : grid.columns, is_square ? longest : grid.rows};
  Tensor<float> out(Shape{2, longest, table_.dim(2)});
  std::fill_n(out.data(), out.num_elements(), 0.0f);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const Tensor<float> rows =
        resample_table(table_.view()[axis], 0, {1, length}, {1, lengths[axis]}, TableResampling::bilinear);
    std::ranges::copy(rows.flat(), out.view()[axis].data());
  }
  return out;
}

void AddedRows::check_grid(const PositionConfig& config, GridSize grid) {
  if (config.added != AddedTable::columns_and_rows || config.resampling == TableResampling::bilinear) return;
  const std::size_t most = config.added_grid.rows;
  VIT_CHECK(grid.rows <= most && grid.columns <= most, (Where{"Position", ErrorKind::argument}), "a grid of ",
            position::to_string(grid), " patches; the learned positions of this model end at ", most,
            " rows and columns");
}

RowsOfGrid AddedRows::rows_of(GridSize grid) const {
  RowsOfGrid out;
  if (config_.added == AddedTable::columns_and_rows) {
    if (config_.resampling == TableResampling::bilinear) {
      out.patches = add_axis_tables(resampled_axes(grid), grid);
    } else {
      out.patches = add_axis_tables(table_, grid);
    }
    return out;
  }
  const std::size_t num_rows = checked_add(num_prefix_rows_, num_patches(grid), kRows);
  const std::size_t edge = std::max(grid.rows, grid.columns);
  const bool is_square = config_.table_grid == TableGrid::square;
  const GridSize whole = is_square                                  ? GridSize{edge, edge}
                         : config_.table_grid == TableGrid::swapped ? GridSize{grid.columns, grid.rows}
                                                                    : grid;
  Tensor<float> rows = resampled(table_, whole);
  if (is_square && whole != grid) rows = top_left(rows, edge, grid);
  if (num_prefix_rows_ > 0) out.prefix = copy_rows(rows, 0, num_prefix_rows_);
  out.patches = num_prefix_rows_ > 0 ? copy_rows(rows, num_prefix_rows_, num_rows) : std::move(rows);
  return out;
}

RowsOfGrid AddedRows::rows_of_steps(const PatchSequence& sequence) const {
  VIT_CHECK(sequence.grid == config_.added_grid && sequence.num_steps == config_.added_steps, kRows,
            "the position table has rows for ", config_.added_steps, " steps of ",
            position::to_string(config_.added_grid), " patches, got ", sequence.num_steps, " of ",
            position::to_string(sequence.grid));
  RowsOfGrid out;
  if (num_prefix_rows_ > 0) out.prefix = copy_rows(table_, 0, num_prefix_rows_);
  out.patches = copy_rows(table_, num_prefix_rows_, table_.dim(0));
  return out;
}

RowsOfGrid AddedRows::of_grid(const PatchSequence& sequence) const {
  RowsOfGrid out;
  if (has_time()) return rows_of_steps(sequence);
  if (!empty()) out = rows_of(sequence.grid);
  if (!out.patches.empty() && sequence.windows)
    out.patches = in_order(out.patches, sequence.windows->patches);
  for (const Tensor<float>& table : between_) out.between.push_back(resampled(table, sequence.grid));
  return out;
}

}  // namespace vit::internal
