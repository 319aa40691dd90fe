#include "vit/layers/linear.h"

#include <algorithm>

#include "vit/base/parallel.h"

namespace vit {
namespace {

/// How a product is cut into tasks: blocks of rows times blocks of whole panels.
struct Split {
  std::size_t rows_per_task;
  std::size_t columns_per_task;
};

// A block of rows should stay in the second-level cache while the weight streams past it, and the tasks
// should outnumber the threads several times so that a slow core does not hold up the others.
Split split_product(std::size_t rows, std::size_t out_features, const kernels::KernelTable& table,
                    int threads) {
  constexpr std::size_t kRowsInCache = 108;
  constexpr std::size_t kTasksPerThread = 8;
  const std::size_t row_blocks = ceil_div(rows, kRowsInCache);
  const std::size_t rows_per_task = round_up(ceil_div(rows, row_blocks), table.tile_rows);
  const std::size_t panels = ceil_div(out_features, table.panel_columns);
  const std::size_t wanted_tasks = kTasksPerThread * static_cast<std::size_t>(resolve_threads(threads));
  const std::size_t column_blocks = std::clamp<std::size_t>(ceil_div(wanted_tasks, row_blocks), 1, panels);
  return {rows_per_task, ceil_div(panels, column_blocks) * table.panel_columns};
}

}  // namespace

Linear::Linear(TensorView<const float> weight, std::span<const float> bias,
               const kernels::KernelTable& kernels)
    : weight_(weight, kernels) {
  if (bias.empty()) return;
  VIT_CHECK(bias.size() == out_features(), "Linear", "bias of ", bias.size(), " numbers for a weight ",
            weight.shape().to_string());
  bias_ = Tensor<float>(Shape{bias.size()});
  std::copy(bias.begin(), bias.end(), bias_.data());
}

void Linear::forward(TensorView<const float> in, TensorView<float> out, int threads,
                     const LinearEpilogue& epilogue) const {
  const std::size_t rows = in.num_rows();
  VIT_CHECK(
      in.num_columns() == in_features() && out.num_columns() == out_features() && out.num_rows() == rows,
      "Linear", "a weight (", out_features(), ", ", in_features(), ") cannot take ", in.shape().to_string(),
      " to ", out.shape().to_string());
  for (const TensorView<const float>& same : {epilogue.multiplier, epilogue.residual}) {
    VIT_CHECK(same.empty() || (same.num_columns() == out_features() && same.num_rows() == rows), "Linear",
              "multiplier or residual ", same.shape().to_string(), " for an output ",
              out.shape().to_string());
  }
  VIT_CHECK(epilogue.scale.empty() || epilogue.scale.size() == out_features(), "Linear", "scale of ",
            epilogue.scale.size(), " numbers for ", out_features(), " features");
  if (rows == 0) return;

  const kernels::KernelTable& table = weight_.table();
  const Split split = split_product(rows, out_features(), table, threads);
  const std::size_t row_blocks = ceil_div(rows, split.rows_per_task);
  const std::size_t column_blocks = ceil_div(out_features(), split.columns_per_task);
  const auto row_of = [](const TensorView<const float>& view, std::size_t row) {
    return view.empty() ? nullptr : view.row(row);
  };
  // Tasks that follow each other share columns: a part of the weight comes from memory once for all rows.
  parallel_for(row_blocks * column_blocks, threads, [&](std::size_t task, int) {
    const std::size_t row = task % row_blocks * split.rows_per_task;
    const std::size_t column = task / row_blocks * split.columns_per_task;
    table.gemm({.in = in.row(row),
                .in_stride = in.row_stride(),
                .rows = std::min(split.rows_per_task, rows - row),
                .packed = weight_.data(),
                .in_features = in_features(),
                .column_begin = column,
                .column_end = std::min(column + split.columns_per_task, out_features()),
                .out = out.row(row),
                .out_stride = out.row_stride(),
                .epilogue = {.bias = bias_.data(),
                             .activation = epilogue.activation,
                             .multiplier = row_of(epilogue.multiplier, row),
                             .multiplier_stride = epilogue.multiplier.row_stride(),
                             .scale = epilogue.scale.empty() ? nullptr : epilogue.scale.data(),
                             .residual = row_of(epilogue.residual, row),
                             .residual_stride = epilogue.residual.row_stride()}});
  });
}

}  // namespace vit
