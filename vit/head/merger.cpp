#include "vit/head/merger.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"
#include "vit/position/rope.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Merger", ErrorKind::mismatch};
// Rows enough for full tiles; few enough that what the steps leave stays in the caches.
constexpr std::size_t kCellsAtOnce = 512;

/// One step: from rows to rows, in place if their width stays.
struct Apply {
  TensorView<float> in;
  const Pass& pass;

  TensorView<float> operator()(const LayerNorm& norm) const {
    norm.forward(in, in, pass.threads);
    return in;
  }
  TensorView<float> operator()(const AffineLayer& affine) const {
    const float* const shift = affine.shift.data();
    const float* const scale = affine.scale.data();
    return for_each_row([&](float* x) {
      for (std::size_t c = 0; c < in.num_columns(); ++c) x[c] = (x[c] - shift[c]) * scale[c];
    });
  }
  TensorView<float> operator()(const GeluLayer&) const {
    return for_each_row([&](float* x) {
      for (std::size_t c = 0; c < in.num_columns(); ++c) x[c] = rounded_gelu(x[c]);
    });
  }
  TensorView<float> operator()(const SoftmaxLayer& softmax) const {
    const TensorView<float> out = other(in, softmax.dim);
    const std::size_t count = in.num_columns();
    for_each_row_of(out, [&](std::size_t row) {
      const float* const x = in.row(row);
      float* const y = out.row(row);
      const float largest = *std::max_element(x, x + count);
      double sum = 0.0;
      for (std::size_t c = 0; c < count; ++c) {
        y[c] = rounded_exp(x[c] - largest);
        sum += y[c];
      }
      const auto inverse = static_cast<float>(1.0 / sum);
      for (std::size_t c = 0; c < count; ++c) y[c] *= inverse;
      std::fill(y + count, y + softmax.dim, 0.0f);
    });
    return out;
  }
  TensorView<float> operator()(const Linear& linear) const {
    const TensorView<float> out = other(in, linear.out_features());
    linear.forward(in, out, pass);
    return out;
  }
  TensorView<float> operator()(const ConvolutionLayer& convolution) const {  // of windows
    return (*this)(convolution.product);
  }
  TensorView<float> operator()(const CellsLayer&) const { return in; }  // combined as they were read
  TensorView<float> operator()(const MlpLayer& mlp) const {
    const TensorView<float> hidden = other(in, mlp.fc1.out_features());
    if (!mlp.gate) {
      mlp.fc1.forward(in, hidden, pass, {.activation = mlp.activation});
    } else {
      multiply_gated(mlp, hidden);
    }
    const TensorView<float> out = other(hidden, mlp.fc2.out_features());
    mlp.fc2.forward(hidden, out, pass, {.activation = mlp.out_activation});
    return out;
  }

 private:
  /// A step writes where the last but one did.
  TensorView<float> other(const TensorView<float>& rows, std::size_t width) const {
    Activations& a = pass.activations;
    return Activations::view_rows(rows.data() == a.cells.data() ? a.cell_steps : a.cells, in.num_rows(),
                                  width);
  }
  void multiply_gated(const MlpLayer& mlp, const TensorView<float>& hidden) const {
    const LinearInput rows = mlp.fc1.convert(in, pass);
    if (!mlp.gate->clips()) return mlp.fc1.multiply_gated(*mlp.gate, rows, hidden, mlp.activation, pass);
    const TensorView<float> gates =
        Activations::view_rows(pass.activations.cell_gates, in.num_rows(), hidden.num_columns());
    mlp.gate->multiply(rows, gates, pass, {.activation = mlp.activation});
    mlp.fc1.multiply(rows, hidden, pass, {.multiplier = gates});
  }
  template <typename Change>
  TensorView<float> for_each_row(const Change& change) const {
    for_each_row_of(in, [&](std::size_t row) { change(in.row(row)); });
    return in;
  }
  template <typename Change>
  void for_each_row_of(const TensorView<float>& rows, const Change& change) const {
    parallel_for_parts(rows.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
      for (std::size_t row = first; row < first + count; ++row) change(row);
    });
  }
};

}  // namespace

/// Some cells, counted over all images.
struct Merger::Part {
  TensorView<const float> tokens{};  // (B, T, C)
  const TokenGrid& grid;
  GridSize cells{};  // of an image
  std::size_t first = 0;
  std::size_t count = 0;
};

Merger::Merger(const MergerConfig& config, MergerLayers layers)
    : config_(config), layers_(std::move(layers)) {}

GridSize Merger::cells_of(const CellConfig& config, GridSize grid) {
  const std::size_t size = config.size;
  VIT_CHECK(config.pads || (grid.rows % size == 0 && grid.columns % size == 0),
            kWhere.with(ErrorKind::argument), "a grid of ", position::to_string(grid),
            " patches cannot be cut into cells of ", size, " x ", size,
            ", from which this model makes its visual tokens; edges of images must be whole cells");
  return {ceil_div(grid.rows, size), ceil_div(grid.columns, size)};
}

void Merger::check_grid(const MergerConfig& config, GridSize grid) {
  CellConfig cells = config.cells;
  cells.size = config.cell_edge();
  cells_of(cells, grid);
}

std::size_t Merger::cells_at_once(std::size_t count) {
  return std::min(count, kCellsAtOnce);
}

std::size_t Merger::widest(const MergerConfig& config, std::size_t embed_dim) {
  std::size_t width = config.cell_width(embed_dim), widest = width;
  for (const MergerStep& step : config.steps) {
    if (const auto* mlp = std::get_if<MergerMlp>(&step.layer)) widest = std::max(widest, mlp->hidden_dim);
    if (std::holds_alternative<MergerConvolution>(step.layer)) widest = std::max(widest, 9 * width);
    width = step.width(width);
    widest = std::max(widest, width);
  }
  return widest;
}

/// One cell of `part` to out (W); `token` has room for C numbers.
void Merger::write_cell(const Part& part, std::size_t cell, float* out, float* token) const {
  const std::size_t width = part.tokens.dim(2), size = config_.cells.size;
  const std::size_t per_image = part.cells.rows * part.cells.columns;
  const TensorView<const float> image = part.tokens[cell / per_image];
  const std::size_t top = cell % per_image / part.cells.columns * size;
  const std::size_t left = cell % per_image % part.cells.columns * size;
  const bool is_mean = config_.cells.rule == CellRule::mean;
  if (is_mean) std::fill_n(out, width, 0.0f);
  for (std::size_t i = 0; i < size * size; ++i) {
    const std::size_t row = top + i / size, column = left + i % size;
    float* const to = is_mean ? token : out + i * width;
    if (row >= part.grid.grid.rows || column >= part.grid.grid.columns) {
      std::fill_n(to, width, 0.0f);
    } else {
      const std::size_t at = part.grid.row(row * part.grid.grid.columns + column);
      const TensorView<const float> from(image.row(at), Shape{1, width});
      if (layers_.token_norm) {
        layers_.token_norm->forward_rows(from, TensorView<float>(to, Shape{1, width}), 0, 1);
      } else {
        std::copy_n(from.data(), width, to);
      }
    }
    for (std::size_t c = 0; is_mean && c < width; ++c) out[c] += to[c];
  }
  const float factor = config_.cells.scale / (is_mean ? static_cast<float>(size * size) : 1.0f);
  const std::size_t cell_width = is_mean ? width : width * size * size;
  for (std::size_t c = 0; factor != 1.0f && c < cell_width; ++c) out[c] *= factor;
}

void Merger::gather(const Part& part, TensorView<float> cells, const Pass& pass) const {
  constexpr std::size_t kCellsPerTask = 4;
  // of a step that comes later: a token of each cell, where cells are means
  const TensorView<float> tokens =
      Activations::view_rows(pass.activations.cell_steps, part.count, part.tokens.dim(2));
  parallel_for_parts(part.count, kCellsPerTask, pass.threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      write_cell(part, part.first + i, cells.row(i), tokens.row(i));
  });
}

/// Vectors of the cells of all images, or what steps made of them.
struct Merger::Map {
  TensorView<float> rows{};  // (B * cells, width)
  GridSize cells{};          // of an image
};

namespace {

/// Whether a step reads the vectors around one, and so the whole map that the steps before it made.
bool reads_map(const MergerLayer& step) {
  return std::holds_alternative<ConvolutionLayer>(step) || std::holds_alternative<CellsLayer>(step);
}

/// The first of such steps from `first` on; their number if there is none.
std::size_t next_of_map(const std::vector<MergerLayer>& steps, std::size_t first) {
  while (first < steps.size() && !reads_map(steps[first])) ++first;
  return first;
}

/// The 3 x 3 vectors around the place of cell `cell` to out (9 W), row by row.
void write_window(const TensorView<float>& rows, GridSize from, GridSize to, std::size_t stride,
                  std::size_t cell, float* out) {
  const std::size_t width = rows.num_columns(), per_image = to.rows * to.columns;
  const std::size_t image = cell / per_image * from.rows * from.columns;
  const std::size_t top = cell % per_image / to.columns * stride,
                    left = cell % per_image % to.columns * stride;
  for (std::size_t i = 0; i < 9; ++i, out += width) {
    const std::size_t row = top + i / 3, column = left + i % 3;  // one more than those of the map
    if (row == 0 || column == 0 || row > from.rows || column > from.columns) {
      std::fill_n(out, width, 0.0f);
    } else {
      std::copy_n(rows.row(image + (row - 1) * from.columns + column - 1), width, out);
    }
  }
}

/// The vectors of cell `cell` of `size` x `size` to out, row by row, or their mean.
void write_later_cell(const TensorView<float>& rows, GridSize from, GridSize to, const CellsLayer& cells,
                      std::size_t cell, float* out) {
  const std::size_t width = rows.num_columns(), per_image = to.rows * to.columns;
  const std::size_t image = cell / per_image * from.rows * from.columns;
  const std::size_t top = cell % per_image / to.columns * cells.size,
                    left = cell % per_image % to.columns * cells.size;
  if (cells.is_mean) std::fill_n(out, width, 0.0f);
  for (std::size_t i = 0; i < cells.size * cells.size; ++i) {
    const float* const x = rows.row(image + (top + i / cells.size) * from.columns + left + i % cells.size);
    if (!cells.is_mean) std::copy_n(x, width, out + i * width);
    for (std::size_t c = 0; cells.is_mean && c < width; ++c) out[c] += x[c];
  }
  const float factor = 1.0f / static_cast<float>(cells.size * cells.size);
  for (std::size_t c = 0; cells.is_mean && c < width; ++c) out[c] *= factor;
}

/// What a step reads of the map `in` for vector `cell` of the map `to`, to out.
struct ReadMap {
  const TensorView<float>& rows;
  GridSize from, to;
  std::size_t cell;
  float* out;

  void operator()(const ConvolutionLayer& step) const {
    write_window(rows, from, to, step.stride, cell, out);
  }
  void operator()(const CellsLayer& step) const { write_later_cell(rows, from, to, step, cell, out); }
  template <typename Layer>
  void operator()(const Layer&) const {}  // reads rows
};

/// The map that a step makes of one with these vectors.
GridSize made_of(const MergerLayer& step, GridSize in) {
  if (const auto* convolution = std::get_if<ConvolutionLayer>(&step))
    return {ceil_div(in.rows, convolution->stride), ceil_div(in.columns, convolution->stride)};
  if (const auto* cells = std::get_if<CellsLayer>(&step))
    return {in.rows / cells->size, in.columns / cells->size};
  return in;
}

/// Numbers of what a step reads of a map so wide.
std::size_t width_read(const MergerLayer& step, std::size_t width) {
  const auto* const cells = std::get_if<CellsLayer>(&step);
  return cells == nullptr ? 9 * width : cells->is_mean ? width : width * cells->size * cells->size;
}

}  // namespace

std::size_t Merger::widest_map(const MergerConfig& config, std::size_t embed_dim) {
  std::size_t width = config.cell_width(embed_dim), widest = 0;
  for (const MergerStep& step : config.steps) {
    if (std::holds_alternative<MergerConvolution>(step.layer) ||
        std::holds_alternative<MergerCells>(step.layer))
      widest = std::max(widest, width);
    width = step.width(width);
  }
  return widest;
}

/// C: the tokens of several blocks are side by side.
std::size_t Merger::embed_dim(TensorView<const float> tokens) const {
  return tokens.dim(2) / std::max<std::size_t>(config_.blocks.size(), 1);
}

/// The steps from `first` to before `last`, of which only the first may read a map, which is `in`.
void Merger::run_steps(Part part, std::size_t first, std::size_t last, const Map& in, const Map& out,
                       const MergerOutputs& outputs, const Pass& pass) const {
  const std::size_t total = part.tokens.dim(0) * out.cells.rows * out.cells.columns;
  const bool starts = first < last && reads_map(layers_.steps[first]) && !in.rows.empty();
  const std::size_t width = starts ? width_read(layers_.steps[first], in.rows.num_columns())
                                   : config_.cell_width(embed_dim(part.tokens));
  for (part.first = 0; part.first < total; part.first += part.count) {
    part.count = std::min(kCellsAtOnce, total - part.first);
    const auto keep = [&](const TensorView<float>& rows, const TensorView<float>& to) {
      for (std::size_t i = 0; !to.empty() && i < part.count; ++i)
        std::copy_n(rows.row(i), rows.num_columns(), to.data() + (part.first + i) * rows.num_columns());
    };
    TensorView<float> rows = Activations::view_rows(pass.activations.cells, part.count, width);
    if (!starts) {
      gather(part, rows, pass);
    } else {
      parallel_for_parts(part.count, /*size=*/4, pass.threads, [&](std::size_t begin, std::size_t count) {
        for (std::size_t i = begin; i < begin + count; ++i)
          std::visit(ReadMap{in.rows, in.cells, out.cells, part.first + i, rows.row(i)},
                     layers_.steps[first]);
      });
    }
    for (std::size_t i = first; i <= last; ++i) {
      if (i == config_.tokens_after) keep(rows, outputs.stage);
      if (i < last) rows = std::visit(Apply{rows, pass}, layers_.steps[i]);
    }
    for (std::size_t i = 0; !out.rows.empty() && i < part.count; ++i)
      std::copy_n(rows.row(i), rows.num_columns(), out.rows.row(part.first + i));
    if (out.rows.empty()) keep(rows, outputs.merged);
  }
}

void Merger::forward(TensorView<const float> tokens, const TokenGrid& grid, const MergerOutputs& out,
                     const Pass& pass) const {
  const StageTimer timer(pass.times, Stage::head);
  const Part part{.tokens = tokens, .grid = grid, .cells = cells_of(config_.cells, grid.grid)};
  const std::size_t last = out.merged.empty() ? config_.tokens_after.value_or(0) : layers_.steps.size();
  Activations& a = pass.activations;
  Map in{.cells = part.cells};
  for (std::size_t first = 0;;) {
    Map made{.cells = in.cells};
    // the first step may read a map, which the cells make
    const bool starts = first < last && reads_map(layers_.steps[first]) && !in.rows.empty();
    if (starts) made.cells = made_of(layers_.steps[first], in.cells);
    const std::size_t end = std::min(last, next_of_map(layers_.steps, first + (starts ? 1 : 0)));
    if (end != last) {
      const std::size_t rows = tokens.dim(0) * made.cells.rows * made.cells.columns;
      made.rows = Activations::view_rows(in.rows.data() == a.map.data() ? a.next_map : a.map, rows,
                                         config_.width_after(end, embed_dim(tokens)));
    }
    run_steps(part, first, end, in, made, out, pass);
    if (end == last) return;
    in = made;
    first = end;
  }
}

}  // namespace vit::internal
