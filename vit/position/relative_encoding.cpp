#include "vit/position/relative_encoding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/rounded.h"
#include "vit/position/coordinates.h"
#include "vit/position/tables.h"

namespace vit::position {
using namespace internal;
namespace {

/// Distances of a grid along both axes: -(rows - 1) to rows - 1, and the same of columns.
GridSize distances_of(GridSize grid) {
  return {2 * grid.rows - 1, 2 * grid.columns - 1};
}

/// Distances 0, 1, 1 + q, 1 + q + q^2 ... on both sides, of which the last is near that of the other grid.
std::vector<double> geometric_distances(std::size_t from, std::size_t to) {
  const std::size_t count = from / 2;
  double low = 1.01, high = 1.5, q = 0.0;
  while (high - low > 1e-6) {
    q = (low + high) / 2.0;
    const double sum = (1.0 - std::pow(q, static_cast<double>(count))) / (1.0 - q);
    (sum > static_cast<double>(to / 2) ? high : low) = q;
  }
  std::vector<double> out(2 * count + 1);
  double sum = 1.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double rounded = static_cast<float>(sum);
    out[count + 1 + i] = rounded;
    out[count - 1 - i] = -rounded;
    sum += std::pow(q, static_cast<double>(i + 1));
  }
  return out;
}

/// Linear between these distances, constant beyond them.
AxisWeights geometric_weights(std::size_t from, std::size_t to) {
  const std::vector<double> known = geometric_distances(from, to);
  std::vector<std::vector<Tap>> taps(to);
  for (std::size_t i = 0; i < to; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(to / 2);
    const auto found = std::ranges::lower_bound(known, x);
    const auto right = std::min(static_cast<std::size_t>(found - known.begin()), known.size() - 1);
    const std::size_t left = right == 0 ? 0 : right - 1;
    const double span = known[right] - known[left];
    const double t = span == 0.0 ? 0.0 : std::clamp((x - known[left]) / span, 0.0, 1.0);
    taps[i] = {{left, 1.0 - t}, {right, t}};
  }
  return AxisWeights(std::move(taps));
}

float log_distance(std::size_t index, std::size_t length) {
  const float x = static_cast<float>(index) - static_cast<float>(length - 1);
  return std::copysign(rounded_log1p(std::abs(x)), x);
}

}  // namespace

TokenPlaces places_in_windows(GridSize grid, std::size_t window) {
  TokenPlaces out;
  const auto add = [&](std::size_t row, std::size_t column) {
    out.rows.push_back(static_cast<std::uint16_t>(row));
    out.columns.push_back(static_cast<std::uint16_t>(column));
  };
  for (std::size_t top = 0; top < grid.rows; top += window) {
    for (std::size_t left = 0; left < grid.columns; left += window) {
      const std::size_t rows = std::min(window, grid.rows - top);
      const std::size_t columns = std::min(window, grid.columns - left);
      for (const bool of_grid : {true, false}) {
        for (std::size_t place = 0; place < window * window; ++place) {
          const std::size_t row = place / window, column = place % window;
          if ((row < rows && column < columns) == of_grid) add(row, column);
        }
      }
    }
  }
  return out;
}

Tensor<float> resample_distances(TensorView<const float> table, GridSize from, GridSize to,
                                 RelativeResampling resampling) {
  const GridSize old = distances_of(from), wanted = distances_of(to);
  if (resampling == RelativeResampling::bilinear || from == to)
    return resample_table(table, 0, old, wanted, TableResampling::bilinear);
  return resample_table(table, 0, old, geometric_weights(old.rows, wanted.rows),
                        geometric_weights(old.columns, wanted.columns));
}

Tensor<float> compute_distances(const RelativeLayers& layers, GridSize grid) {
  const GridSize distances = distances_of(grid);
  const std::size_t count = num_patches(distances), num_heads = layers.fc2.dim(0);
  const std::size_t hidden_dim = layers.fc1.dim(0);
  Tensor<float> out(Shape{count, num_heads});
  std::vector<double> hidden(hidden_dim);
  for (std::size_t i = 0; i < count; ++i) {
    const double y = log_distance(i / distances.columns, grid.rows);
    const double x = log_distance(i % distances.columns, grid.columns);
    for (std::size_t k = 0; k < hidden_dim; ++k) {
      const float* const weight = layers.fc1.view().row(k);
      const double sum = weight[0] * y + weight[1] * x + static_cast<double>(layers.fc1_bias.data()[k]);
      hidden[k] = std::max(sum, 0.0);
    }
    for (std::size_t h = 0; h < num_heads; ++h) {
      double sum = layers.fc2_bias.data()[h];
      for (std::size_t k = 0; k < hidden_dim; ++k)
        sum += static_cast<double>(layers.fc2.view().row(h)[k]) * hidden[k];
      out.view().row(i)[h] = static_cast<float>(sum);
    }
  }
  return out;
}

}  // namespace vit::position

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kRelative{"Position", ErrorKind::mismatch};

/// Range of the places of keys of a grid; those of queries are as many, from num_places() - 1 on.
std::size_t num_places(GridSize grid) {
  return (grid.rows - 1) * (2 * grid.columns - 1) + grid.columns;
}

void check_shape(const Tensor<float>& tensor, const Shape& expected, const char* what) {
  VIT_CHECK(tensor.shape() == expected, kRelative, what, " of relative positions ",
            tensor.shape().to_string(), ", expected ", expected.to_string());
}

void check_tensors(const RelativeConfig& config, const RelativeTensors& tensors, const PositionShape& shape) {
  const Shape heads{shape.num_heads};
  if (config.kind == RelativeKind::mlp) {
    check_shape(tensors.layers.fc1, Shape{config.mlp_dim, 2}, "first layer");
    check_shape(tensors.layers.fc1_bias, Shape{config.mlp_dim}, "bias of the first layer");
    check_shape(tensors.layers.fc2, Shape{shape.num_heads, config.mlp_dim}, "second layer");
    check_shape(tensors.layers.fc2_bias, heads, "bias of the second layer");
    return;
  }
  const std::size_t distances = (2 * config.grid.rows - 1) * (2 * config.grid.columns - 1);
  check_shape(tensors.table, Shape{distances + (shape.num_prefix != 0 ? 3 : 0), shape.num_heads}, "table");
}

}  // namespace

RelativeTerms RelativeOfGrid::of_block(std::size_t layer) const {
  if (tables.empty()) return {};
  const Tensor<float>& table = tables[std::min(layer, tables.size() - 1)];
  if (!query_places.empty()) {
    return {.table = table.data(),
            .head_stride = table.dim(1),
            .query_places = query_places.data(),
            .key_places = key_places.data()};
  }
  const bool windowed = keys_of(layer) != 0;
  const TokenPlaces& places = windowed ? window_tokens : tokens;
  return {.axes = table.data(),
          .axes_stride = 2 * ((windowed ? window : grid).rows + (windowed ? window : grid).columns) - 2,
          .grid = windowed ? window : grid,
          .rows = places.rows.data(),
          .columns = places.columns.data()};
}

std::size_t RelativeOfGrid::bytes() const {
  std::size_t bytes = (query_places.size() + key_places.size()) * sizeof(std::int32_t);
  for (const Tensor<float>& table : tables) bytes += table.flat().size_bytes();
  for (const TokenPlaces* const places : {&tokens, &window_tokens})
    bytes += (places->rows.size() + places->columns.size()) * sizeof(std::uint16_t);
  return bytes;
}

RelativeEncoding::RelativeEncoding(const PositionConfig& config, const PositionShape& shape,
                                   const PositionWeights& weights)
    : config_(config.relative),
      num_heads_(shape.num_heads),
      head_dim_(shape.head_dim),
      num_prefix_(shape.num_prefix),
      window_(shape.window),
      pads_(shape.completes_windows),
      stored_(weights.relative) {
  if (pads_) {
    in_windows_.assign(shape.depth, 1);
    for (const std::size_t block : shape.global_blocks) in_windows_.at(block) = 0;
  }
  if (!config_) return;
  VIT_CHECK(stored_ != nullptr, kRelative, "the config has relative positions, but there are no tensors");
  const std::vector<RelativeTensors>& blocks = stored_->blocks;
  if (config_->kind == RelativeKind::axes) {
    VIT_CHECK(num_prefix_ == 0 && blocks.size() == shape.depth && (window_ == 0 || pads_), kRelative,
              "vectors of distances are for patches only, in whole windows, and of all blocks");
    for (std::size_t layer = 0; layer < shape.depth; ++layer) {
      for (const Tensor<float>* axis : {&blocks[layer].rows, &blocks[layer].columns})
        VIT_CHECK(axis->shape().rank() == 2 && axis->dim(0) % 2 == 1 && axis->dim(1) == head_dim_, kRelative,
                  "vectors of distances ", axis->shape().to_string(), ", expected (2 n - 1, ", head_dim_,
                  ")");
    }
    return;
  }
  VIT_CHECK(num_prefix_ <= 1 && window_ == 0, kRelative,
            "tables of distances know one class token at most, and no windows");
  if (config_->scope != RelativeScope::blocks) check_tensors(*config_, stored_->shared, shape);
  if (config_->scope == RelativeScope::shared) return;
  VIT_CHECK(blocks.size() == shape.depth, kRelative, "tables of distances of ", blocks.size(), " blocks, of ",
            shape.depth);
  for (const RelativeTensors& block : blocks) check_tensors(*config_, block, shape);
}

/// Patches: places of queries less those of keys count distances, [0, 2 S - 1) for S places. The class token
/// has places so far away that its distances to all patches are regions of their own, filled with one number:
/// | patches: 2 S - 1 | class to patch: S | patch to class: S | unused: S - 1 | class to class |
Tensor<float> RelativeEncoding::table_of(std::size_t layer, GridSize grid) const {
  const std::size_t places = num_places(grid), distances = 2 * places - 1;
  Tensor<float> out(Shape{num_heads_, num_prefix_ == 0 ? distances : 5 * places - 1});
  std::fill_n(out.data(), out.num_elements(), 0.0f);
  const auto add = [&](const RelativeTensors& tensors) {
    const bool computed = config_->kind == RelativeKind::mlp;
    const std::size_t stored = (2 * config_->grid.rows - 1) * (2 * config_->grid.columns - 1);
    const Tensor<float> table = computed ? compute_distances(tensors.layers, grid)
                                         : resample_distances(tensors.table.view().part(0, stored),
                                                              config_->grid, grid, config_->resampling);
    for (std::size_t h = 0; h < num_heads_; ++h) {
      float* const to = out.view().row(h);
      for (std::size_t i = 0; i < distances; ++i) to[i] += table.view().row(i)[h];
      if (computed || num_prefix_ == 0) continue;  // layers say nothing of a class token
      for (std::size_t i = 0; i < places; ++i) {
        to[distances + i] += tensors.table.view().row(stored)[h];
        to[distances + places + i] += tensors.table.view().row(stored + 1)[h];
      }
      to[5 * places - 2] += tensors.table.view().row(stored + 2)[h];
    }
  };
  if (config_->scope != RelativeScope::blocks) add(stored_->shared);
  if (config_->scope != RelativeScope::shared) add(stored_->blocks[layer]);
  return out;
}

/// Transposed, by rising row and column of the key.
Tensor<float> RelativeEncoding::axes_of(std::size_t layer, GridSize grid) const {
  const GridSize distances{2 * grid.rows - 1, 2 * grid.columns - 1};
  const std::size_t stride = distances.rows + distances.columns;
  Tensor<float> out(Shape{head_dim_ * stride + kAxesPadding});
  std::fill_n(out.data(), out.num_elements(), 0.0f);
  const auto add = [&](const Tensor<float>& vectors, std::size_t count, std::size_t first) {
    Tensor<float> resampled;
    if (vectors.dim(0) != count)
      resampled = resample_table(vectors, 0, {1, vectors.dim(0)}, {1, count}, TableResampling::bilinear);
    const Tensor<float>& from = resampled.empty() ? vectors : resampled;
    for (std::size_t e = 0; e < count; ++e) {
      for (std::size_t c = 0; c < head_dim_; ++c)
        out.data()[c * stride + first + e] = from.view().row(count - 1 - e)[c];
    }
  };
  add(stored_->blocks[layer].rows, distances.rows, 0);
  add(stored_->blocks[layer].columns, distances.columns, distances.rows);
  return out;
}

RelativeOfGrid RelativeEncoding::of_grid(const PatchSequence& sequence) const {
  RelativeOfGrid out{.grid = sequence.grid, .window = {window_, window_}, .in_windows = in_windows_};
  const GridSize grid = sequence.grid;
  const std::size_t count = num_patches(grid);
  if (pads_) out.window_keys = checked_mul(window_, window_, kRelative);
  if (!config_) return out;
  if (config_->kind == RelativeKind::axes) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t patch = sequence.windows ? sequence.windows->patches[i] : i;
      out.tokens.rows.push_back(static_cast<std::uint16_t>(patch / grid.columns));
      out.tokens.columns.push_back(static_cast<std::uint16_t>(patch % grid.columns));
    }
    if (pads_) out.window_tokens = places_in_windows(grid, window_);
    for (std::size_t layer = 0; layer < stored_->blocks.size(); ++layer)
      out.tables.push_back(axes_of(layer, out.keys_of(layer) != 0 ? out.window : grid));
    return out;
  }
  constexpr std::size_t kMostPlaces = std::size_t{1} << 27;  // five times as many are int32
  VIT_CHECK(num_places(grid) <= kMostPlaces, kRelative.with(ErrorKind::argument),
            "relative positions on a grid of ", position::to_string(grid), " patches, which is too large");
  const auto places = static_cast<std::int32_t>(num_places(grid));
  const auto width = static_cast<std::int32_t>(2 * grid.columns - 1);
  if (num_prefix_ != 0) {
    out.query_places.push_back(3 * places - 2);
    out.key_places.push_back(-2 * places);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto place =
        static_cast<std::int32_t>(i / grid.columns) * width + static_cast<std::int32_t>(i % grid.columns);
    out.query_places.push_back(places - 1 + place);
    out.key_places.push_back(place);
  }
  const std::size_t num_tables = config_->scope == RelativeScope::shared ? 1 : stored_->blocks.size();
  for (std::size_t layer = 0; layer < num_tables; ++layer) out.tables.push_back(table_of(layer, grid));
  return out;
}

}  // namespace vit::internal
