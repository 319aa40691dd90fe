#include "vit/head/merger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/position/rope.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Merger", ErrorKind::mismatch};
// Rows enough for full tiles; few enough that what the steps leave stays in the caches.
constexpr std::size_t kCellsAtOnce = 512;

/// gelu(x), in place.
void apply_gelu(TensorView<float> rows, std::size_t first, std::size_t count) {
  for (std::size_t row = first; row < first + count; ++row) {
    for (float* x = rows.row(row); x != rows.row(row) + rows.num_columns(); ++x)
      *x = 0.5f * *x * (1.0f + std::erf(*x * 0.70710678f));
  }
}

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

GridSize Merger::cells_of(const MergerConfig& config, GridSize grid) {
  const std::size_t size = config.size;
  VIT_CHECK(config.pads || (grid.rows % size == 0 && grid.columns % size == 0),
            kWhere.with(ErrorKind::argument), "a grid of ", position::to_string(grid),
            " patches cannot be cut into cells of ", size, " x ", size,
            ", from which this model makes its visual tokens; edges of images must be whole cells");
  return {ceil_div(grid.rows, size), ceil_div(grid.columns, size)};
}

std::size_t Merger::cells_at_once(std::size_t count) {
  return std::min(count, kCellsAtOnce);
}

std::size_t Merger::widest(const MergerConfig& config, std::size_t embed_dim) {
  return std::max({config.cell_width(embed_dim), config.reduced_dim, config.hidden_dim, config.out_dim,
                   config.projection_dim});
}

/// One cell of `part` to out (W); `token` has room for C numbers.
void Merger::write_cell(const Part& part, std::size_t cell, float* out, float* token) const {
  const std::size_t width = part.tokens.dim(2), size = config_.size;
  const std::size_t per_image = part.cells.rows * part.cells.columns;
  const TensorView<const float> image = part.tokens[cell / per_image];
  const std::size_t top = cell % per_image / part.cells.columns * size;
  const std::size_t left = cell % per_image % part.cells.columns * size;
  const bool is_mean = config_.cells == CellRule::mean;
  if (is_mean) std::fill_n(out, width, 0.0f);
  for (std::size_t i = 0; i < size * size; ++i) {
    const std::size_t row = top + i / size, column = left + i % size;
    float* const to = is_mean ? token : out + i * width;
    if (row >= part.grid.grid.rows || column >= part.grid.grid.columns) {
      std::fill_n(to, width, 0.0f);
    } else {
      const std::size_t at = part.grid.row(row * part.grid.grid.columns + column);
      const TensorView<const float> from(image.row(at), Shape{1, width});
      if (config_.norm == MergerNorm::token) {
        layers_.norm->forward_rows(from, TensorView<float>(to, Shape{1, width}), 0, 1);
      } else {
        std::copy_n(from.data(), width, to);
      }
    }
    for (std::size_t c = 0; is_mean && c < width; ++c) out[c] += to[c];
  }
  const float factor = config_.cell_scale / (is_mean ? static_cast<float>(size * size) : 1.0f);
  const std::size_t cell_width = is_mean ? width : width * size * size;
  for (std::size_t c = 0; factor != 1.0f && c < cell_width; ++c) out[c] *= factor;
  for (std::size_t c = 0; !layers_.scale.empty() && c < cell_width; ++c)
    out[c] = (out[c] - layers_.shift.data()[c]) * layers_.scale.data()[c];
}

void Merger::gather(const Part& part, TensorView<float> cells, const Pass& pass) const {
  constexpr std::size_t kCellsPerTask = 4;
  // of a step that comes later: a token of each cell, where cells are means
  const TensorView<float> tokens =
      Activations::view_rows(pass.activations.cell_steps, part.count, part.tokens.dim(2));
  parallel_for_parts(part.count, kCellsPerTask, pass.threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      write_cell(part, part.first + i, cells.row(i), tokens.row(i));
    if (config_.norm == MergerNorm::cell) layers_.norm->forward_rows(cells, cells, first, count);
  });
}

/// The vectors that the MLP reads, in activations.cells.
TensorView<float> Merger::reduce(TensorView<float> cells, const Pass& pass) const {
  Activations& a = pass.activations;
  if (!layers_.reduce) return cells;
  const std::size_t count = cells.num_rows(), width = layers_.reduce->out_features();
  const TensorView<float> reduced = Activations::view_rows(a.cell_steps, count, width);
  layers_.reduce->forward(cells, reduced, pass);
  return reduced;
}

/// What the MLP and the layers around it make of the reduced cells.
TensorView<float> Merger::multiply(TensorView<float> in, const Pass& pass) const {
  Activations& a = pass.activations;
  const std::size_t count = in.num_rows();
  const auto is_in = [&](const TensorView<float>& member) { return in.data() == member.data(); };
  // The next step writes where the last but one did.
  const auto next = [&](std::size_t width) {
    return Activations::view_rows(is_in(a.cells) ? a.cell_steps : a.cells, count, width);
  };
  if (layers_.middle) {
    const TensorView<float> out = next(layers_.middle->out_features());
    layers_.middle->forward(in, out, pass);
    layers_.middle_norm->forward(out, out, pass.threads);
    parallel_for_parts(count, 16, pass.threads,
                       [&](std::size_t first, std::size_t rows) { apply_gelu(out, first, rows); });
    in = out;
  }
  if (layers_.fc1) {
    const TensorView<float> hidden = next(layers_.fc1->out_features());
    if (layers_.gate) {
      const LinearInput rows = layers_.fc1->convert(in, pass);
      if (layers_.gate->clips()) {
        const TensorView<float> gates = Activations::view_rows(a.cell_gates, count, hidden.num_columns());
        layers_.gate->multiply(rows, gates, pass, {.activation = config_.activation});
        layers_.fc1->multiply(rows, hidden, pass, {.multiplier = gates});
      } else {
        layers_.fc1->multiply_gated(*layers_.gate, rows, hidden, config_.activation, pass);
      }
    } else {
      layers_.fc1->forward(in, hidden, pass, {.activation = config_.activation});
    }
    in = hidden;
    const TensorView<float> out = next(layers_.fc2->out_features());
    layers_.fc2->forward(in, out, pass, {.activation = config_.out_activation});
    in = out;
    if (layers_.mlp_norm) layers_.mlp_norm->forward(in, in, pass.threads);
  }
  if (layers_.second_fc1) {
    const TensorView<float> hidden = next(layers_.second_fc1->out_features());
    layers_.second_fc1->forward(in, hidden, pass, {.activation = config_.activation});
    in = hidden;
    const TensorView<float> out = next(layers_.second_fc2->out_features());
    layers_.second_fc2->forward(in, out, pass);
    layers_.second_norm->forward(out, out, pass.threads);
    in = out;
  }
  return in;
}

void Merger::forward(TensorView<const float> tokens, const TokenGrid& grid, const MergerOutputs& out,
                     const Pass& pass) const {
  const StageTimer timer(pass.times, Stage::head);
  Activations& a = pass.activations;
  const std::size_t cell_width = config_.cell_width(tokens.dim(2));
  Part part{.tokens = tokens, .grid = grid, .cells = cells_of(config_, grid.grid)};
  const std::size_t total = tokens.dim(0) * part.cells.rows * part.cells.columns;
  for (part.first = 0; part.first < total; part.first += part.count) {
    part.count = std::min(kCellsAtOnce, total - part.first);
    const TensorView<float> cells = Activations::view_rows(a.cells, part.count, cell_width);
    gather(part, cells, pass);
    const auto keep = [&](const TensorView<float>& rows, const TensorView<float>& to) {
      for (std::size_t i = 0; !to.empty() && i < part.count; ++i)
        std::copy_n(rows.row(i), rows.num_columns(), to.data() + (part.first + i) * rows.num_columns());
    };
    const TensorView<float> reduced = reduce(cells, pass);
    if (config_.tokens == TokenStage::reduced) keep(reduced, out.stage);
    if (out.merged.empty() && config_.tokens == TokenStage::reduced) continue;
    TensorView<float> merged = multiply(reduced, pass);
    if (config_.tokens == TokenStage::merged) keep(merged, out.stage);
    if (out.merged.empty()) continue;
    if (layers_.projection_norm) layers_.projection_norm->forward(merged, merged, pass.threads);
    if (layers_.projection) {
      const bool in_cells = merged.data() == a.cells.data();
      const TensorView<float> projected = Activations::view_rows(
          in_cells ? a.cell_steps : a.cells, part.count, layers_.projection->out_features());
      layers_.projection->forward(merged, projected, pass);
      if (layers_.out_norm) layers_.out_norm->forward(projected, projected, pass.threads);
      merged = projected;
    }
    keep(merged, out.merged);
  }
}

}  // namespace vit::internal
