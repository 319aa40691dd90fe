#include "vit/position/position.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/position/rope.h"
#include "vit/position/tables.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kWhere{"Position", ErrorKind::mismatch};

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

void in_order(std::vector<double>& coordinates, std::span<const std::uint32_t> patches) {
  std::vector<double> out(coordinates.size());
  for (std::size_t i = 0; i < patches.size(); ++i) out[i] = coordinates[patches[i]];
  coordinates = std::move(out);
}

/// Coordinates of the patches of a grid where each window of w x w counts from its own corner.
GridCoords coords_in_windows(GridSize grid, std::size_t window, const CoordinateOptions& options) {
  const GridCoords of_window = grid_coords({window, window}, options);
  GridCoords out;
  for (std::size_t patch = 0; patch < num_patches(grid); ++patch) {
    const std::size_t at = patch / grid.columns % window * window + patch % grid.columns % window;
    out.t_x.push_back(of_window.t_x[at]);
    out.t_y.push_back(of_window.t_y[at]);
  }
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

/// Angles (N, d / 2) of patches behind those of the prefix: the class token has its own, others do not turn.
Tensor<double> behind_prefix(TensorView<const double> angles, std::size_t num_prefix,
                             std::span<const double> class_angles) {
  Tensor<double> out(Shape{num_prefix + angles.dim(0), angles.dim(1)});
  std::ranges::fill(out.flat(), 0.0);
  std::ranges::copy(class_angles, out.data());
  std::ranges::copy(angles.flat(), out.data() + num_prefix * angles.dim(1));
  return out;
}

}  // namespace

RopeFactors PositionContext::factors(std::size_t layer) const {
  if (tables_.empty()) return {};
  if (layer < table_of_block_.size()) return tables_[table_of_block_[layer]].factors();
  if (tables_.size() == 1) return tables_.front().factors();
  VIT_CHECK(layer < tables_.size(), "PositionContext", "no factors for layer ", layer, " of ",
            tables_.size());
  return tables_[layer].factors();
}

Position::Position(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights)
    : config_(config),
      trained_grid_(shape.trained_grid),
      num_prefix_(shape.num_prefix),
      window_(shape.window),
      class_angles_(weights.class_angles.begin(), weights.class_angles.end()) {
  VIT_CHECK((config.added == AddedTable::none) == weights.added_table.empty(), kWhere,
            config.added == AddedTable::none ? "the config adds no learned table, but one of shape "
                                             : "the config adds a learned table, but it has shape ",
            weights.added_table.shape().to_string());
  VIT_CHECK((config.rope == RopeKind::mixed) == !weights.mixed_frequencies.empty(), kWhere,
            "learned rotation frequencies ", weights.mixed_frequencies.shape().to_string(),
            config.rope == RopeKind::mixed ? ", expected some" : " although the config does not use them");
  const bool wants_periods = config.rope == RopeKind::axial && config.stored_periods;
  VIT_CHECK(wants_periods == !weights.periods.empty(), kWhere, weights.periods.size(), " stored periods",
            wants_periods ? ", expected some" : " although the config does not use them");
  const std::size_t num_angles = config.class_angles ? shape.head_dim / 2 : 0;
  VIT_CHECK(weights.class_angles.size() == num_angles, kWhere, weights.class_angles.size(),
            " angles of the class token, expected ", num_angles);
  VIT_CHECK(config.rope == RopeKind::none || config.coordinates != CoordinateRule::scaled_to_reference ||
                (config.reference_grid.rows > 0 && config.reference_grid.columns > 0),
            kWhere, "scaled coordinates need a reference grid, got ", to_string(config.reference_grid));
  VIT_CHECK(!config.rope_scaling || config.rope != RopeKind::none, kWhere.with(ErrorKind::argument),
            "RoPE scaling is requested, but the model has no rotary positions");
  VIT_CHECK(config.rope != RopeKind::mixed || !config.rope_scaling || !config.rope_scaling->truncate,
            kWhere.with(ErrorKind::argument),
            "truncate needs ordered frequencies; those of this model are learned");
  if (config.added != AddedTable::none) load_table(weights.added_table, shape.embed_dim);
  VIT_CHECK(config.between_blocks == !weights.between_tables.empty(), kWhere, "tables between blocks ",
            weights.between_tables.shape().to_string(),
            config.between_blocks ? ", expected some" : " though the config has no use for them");
  if (config.between_blocks) {
    const Shape expected{shape.depth - 1, table_.dim(0), shape.embed_dim};
    VIT_CHECK(num_prefix_rows_ == num_prefix_ && weights.between_tables.shape() == expected, kWhere,
              "tables between blocks ", weights.between_tables.shape().to_string(), ", expected ",
              expected.to_string(), " with rows for all ", num_prefix_, " prefix tokens");
    for (std::size_t layer = 0; layer + 1 < shape.depth; ++layer)
      between_tables_.push_back(copy_rows(weights.between_tables[layer], 0, table_.dim(0)));
  }
  if (config.rope != RopeKind::none) load_frequencies(shape, weights);
  if (config.per_window) {
    in_windows_.assign(shape.depth, 1);
    for (const std::size_t block : shape.global_blocks) in_windows_.at(block) = 0;
  }
}

void Position::load_table(TensorView<const float> table, std::size_t embed_dim) {
  if (config_.added == AddedTable::columns_and_rows) {
    const Shape expected{2, config_.added_grid.rows, embed_dim};
    VIT_CHECK(table.shape() == expected, kWhere, "tables of columns and rows ", table.shape().to_string(),
              ", expected ", expected.to_string());
    table_ = Tensor<float>(expected);
    std::ranges::copy(table.flat(), table_.data());
    return;
  }
  const std::size_t num_native = num_patches(config_.added_grid);
  const bool with_prefix = config_.added == AddedTable::prefix_and_patches;
  const bool fits = table.rank() == 2 && table.num_columns() == embed_dim &&
                    (with_prefix ? table.dim(0) > num_native : table.dim(0) == num_native);
  VIT_CHECK(fits, kWhere, "learned table ", table.shape().to_string(), ", expected ",
            with_prefix ? "(prefix + " : "(", num_native, ", ", embed_dim, ") for a grid of ",
            to_string(config_.added_grid));
  num_prefix_rows_ = table.dim(0) - num_native;
  table_ = copy_rows(table, 0, table.dim(0));
}

void Position::load_frequencies(const PositionShape& shape, const PositionWeights& weights) {
  if (config_.rope == RopeKind::volume) {
    head_dim_ = shape.head_dim;
    return;
  }
  if (config_.rope == RopeKind::mixed) {
    const Shape expected{2, shape.depth, shape.num_heads, num_frequencies_1d(shape.head_dim)};
    VIT_CHECK(weights.mixed_frequencies.shape() == expected, kWhere, "rotation frequencies ",
              weights.mixed_frequencies.shape().to_string(), ", expected ", expected.to_string());
    mixed_.emplace(weights.mixed_frequencies);
    return;
  }
  const std::size_t num_frequencies = num_axial_frequencies(shape.head_dim);
  if (config_.stored_periods) {
    VIT_CHECK(weights.periods.size() == num_frequencies, kWhere, weights.periods.size(),
              " stored periods, expected ", num_frequencies, " for heads of ", shape.head_dim, " channels");
    frequencies_ = RopeFrequencies::from_periods(weights.periods).scaled(config_.angle_scale);
  } else {
    frequencies_ = RopeFrequencies::from_theta(num_frequencies, config_.theta).scaled(config_.angle_scale);
  }
  if (config_.frequencies == AxisFrequencies::alternating) {
    const double between = std::pow(config_.theta, -2.0 / static_cast<double>(shape.head_dim));
    second_axis_ = frequencies_->scaled(between);
  }
}

void Position::add_rows(PositionContext& context) const {
  const GridSize grid = context.grid_;
  if (config_.added == AddedTable::columns_and_rows) {
    context.patch_rows_ = add_axis_tables(table_, grid);
  } else {
    const std::size_t num_rows = checked_add(num_prefix_rows_, num_patches(grid), kWhere);
    Tensor<float> resampled;
    const std::size_t edge = std::max(grid.rows, grid.columns);
    const GridSize whole = config_.square_table ? GridSize{edge, edge} : grid;
    if (!is_reused(config_.added_grid, whole, config_.reuse))
      resampled = resample_table(table_, num_prefix_rows_, config_.added_grid, whole, config_.resampling);
    if (whole != grid) resampled = top_left(resampled.empty() ? table_.view() : resampled.view(), edge, grid);
    const TensorView<const float> rows = resampled.empty() ? table_.view() : std::as_const(resampled).view();
    if (num_prefix_rows_ > 0) context.prefix_rows_ = copy_rows(rows, 0, num_prefix_rows_);
    context.patch_rows_ = copy_rows(rows, num_prefix_rows_, num_rows);
  }
  if (context.windows_) context.patch_rows_ = in_order(context.patch_rows_, context.windows_->patches);
}

PositionContext Position::build_context(GridSize grid, std::size_t num_steps) const {
  checked_add(num_prefix_rows_, checked_mul(num_steps, num_patches(grid), kWhere), kWhere);
  VIT_CHECK(num_steps == 1 || (num_steps > 1 && config_.rope == RopeKind::volume && table_.empty()), kWhere,
            num_steps, " steps in time, of positions that have rows and columns only");
  PositionContext context;
  context.grid_ = grid;
  context.num_steps_ = num_steps;
  if (window_ != 0) context.windows_ = order_by_windows(grid, window_);
  if (!table_.empty()) add_rows(context);
  for (const Tensor<float>& table : between_tables_) {
    context.between_rows_.push_back(
        is_reused(config_.added_grid, grid, config_.reuse)
            ? copy_rows(table, 0, table.dim(0))
            : resample_table(table, num_prefix_rows_, config_.added_grid, grid, config_.resampling));
  }
  if (config_.rope != RopeKind::none) add_rope_tables(context);
  return context;
}

void Position::add_rope_tables(PositionContext& context) const {
  if (config_.rope == RopeKind::volume) {
    context.tables_.emplace_back(volume_angles(context.num_steps_, context.grid_, head_dim_, config_.theta),
                                 config_.pairing);
    return;
  }
  const CoordinateOptions options{
      .rule = config_.coordinates, .offset = config_.coordinate_offset, .reference = config_.reference_grid};
  const RopeScaling scaling =
      config_.rope_scaling.value_or(RopeScaling{.rule = default_scaling_rule(options.rule)});
  GridScale scale;
  if (config_.rope_scaling) {
    scale = grid_scale(context.grid_, trained_grid_, options, scaling);
    context.logit_factor_ = position::logit_factor(scaling, scale, context.grid_, trained_grid_);
  }
  // A rule that equals the family's default uses the family's code path, so results are bit-identical.
  const bool is_own = scaling.rule == default_scaling_rule(options.rule) && scaling.factor == 0.0 &&
                      (scaling.axes == RopeScalingAxes::each || scaling.rule == RopeScalingRule::none);
  const bool is_scaled = config_.rope_scaling && !is_own;
  GridCoords coords = is_scaled ? extrapolated_coords(context.grid_, trained_grid_, options)
                                : grid_coords(context.grid_, options);
  const auto sort = [&](GridCoords& of_patches) {
    if (!context.windows_) return;
    in_order(of_patches.t_x, context.windows_->patches);
    in_order(of_patches.t_y, context.windows_->patches);
  };
  sort(coords);
  if (frequencies_) {
    const bool x_first = config_.axis_order == AxisOrder::x_then_y;
    const auto of_axis = [&](AxisScale axis, bool first) {
      const RopeFrequencies& own = first || !second_axis_ ? *frequencies_ : *second_axis_;
      return is_scaled ? scale_frequencies(own, scaling, axis) : own;
    };
    const auto angles_of = [&](const GridCoords& at) {
      return axial_angles(at, of_axis(scale.x, x_first), of_axis(scale.y, !x_first), config_.axis_order);
    };
    Tensor<double> angles = angles_of(coords);
    context.turns_prefix_ = !class_angles_.empty();
    if (context.turns_prefix_) angles = behind_prefix(angles, num_prefix_, class_angles_);
    context.tables_.emplace_back(angles, config_.pairing);
    if (!in_windows_.empty()) {
      coords = coords_in_windows(context.grid_, window_, options);
      sort(coords);
      context.tables_.emplace_back(angles_of(coords), config_.pairing);
      context.table_of_block_ = in_windows_;
    }
  }
  if (mixed_) {
    const MixedFrequencies mixed = is_scaled ? scale_frequencies(*mixed_, scaling, scale) : *mixed_;
    for (std::size_t layer = 0; layer < mixed.depth(); ++layer) {
      context.tables_.push_back(
          build_mixed_table<float>(coords, mixed, layer, config_.pairing, config_.axis_order));
    }
  }
}

std::shared_ptr<const PositionContext> PositionCache::for_grid(GridSize grid, std::size_t num_steps) const {
  constexpr std::size_t kKept = 8, kMostBytes = std::size_t{1} << 28;
  const std::lock_guard lock(mutex_);
  for (auto entry = contexts_.begin(); entry != contexts_.end(); ++entry) {
    if ((*entry)->grid() != grid || (*entry)->num_steps() != num_steps) continue;
    contexts_.splice(contexts_.begin(), contexts_, entry);
    return contexts_.front();
  }
  contexts_.push_front(std::make_shared<const PositionContext>(position_.build_context(grid, num_steps)));
  std::size_t bytes = 0, fitting = 0;
  for (const auto& context : contexts_) {
    bytes += context->between_bytes();
    if (fitting == 0 || bytes <= kMostBytes) ++fitting;
  }
  contexts_.resize(std::min({contexts_.size(), kKept, fitting}));
  return contexts_.front();
}

}  // namespace vit::internal
