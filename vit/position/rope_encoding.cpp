#include "vit/position/rope_encoding.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kRope{"Position", ErrorKind::mismatch};

// ---------------------------------------------------------------------------- what another grid changes

/// A grid compared with the trained one, under the rule of rope_scaling.
struct GridChange {
  RopeScaling scaling;
  GridScale scale{};
  bool is_scaled = false;  // by another rule than the family's own
};

CoordinateOptions coordinate_options(const PositionConfig& config) {
  return {.rule = config.coordinates, .offset = config.coordinate_offset, .reference = config.reference_grid};
}

GridChange change_of(const PositionConfig& config, GridSize grid, GridSize trained) {
  const RopeScalingRule own = default_scaling_rule(config.coordinates);
  if (!config.rope_scaling) return {.scaling = {.rule = own}};
  const RopeScaling& scaling = *config.rope_scaling;
  // A rule that equals the family's default uses the family's code path, so results are bit-identical.
  const bool is_own = scaling.rule == own && scaling.factor == 0.0 &&
                      (scaling.axes == RopeScalingAxes::each || own == RopeScalingRule::none);
  return {.scaling = scaling,
          .scale = grid_scale(grid, trained, coordinate_options(config), scaling),
          .is_scaled = !is_own};
}

RopeFrequencies on_axis(const RopeFrequencies& trained, const GridChange& change, AxisScale axis) {
  return change.is_scaled ? scale_frequencies(trained, change.scaling, axis) : trained;
}

// ---------------------------------------------------------------------------- the kinds of rotation

TrainedFrequencies load_axial(const PositionConfig& config, const PositionShape& shape,
                              const PositionWeights& weights) {
  const std::size_t count = num_axial_frequencies(shape.head_dim);
  const bool is_stored = config.frequencies == AxisFrequencies::stored;
  VIT_CHECK(!is_stored || weights.periods.size() == count, kRope, weights.periods.size(),
            " stored periods, expected ", count, " for heads of ", shape.head_dim, " channels");
  const RopeFrequencies first = (is_stored ? RopeFrequencies::from_periods(weights.periods)
                                           : RopeFrequencies::from_theta(count, config.theta))
                                    .scaled(config.angle_scale);
  const bool alternate = config.frequencies == AxisFrequencies::alternating;
  const double between = std::pow(config.theta, -2.0 / static_cast<double>(shape.head_dim));
  const RopeFrequencies second = alternate ? first.scaled(between) : first;
  const bool x_first = config.axis_order == AxisOrder::x_then_y;
  return {.x = x_first ? first : second, .y = x_first ? second : first, .mixed = {}};
}

FrequencyVectors axial_vectors(const TrainedFrequencies& trained, const PositionConfig& config,
                               const PositionShape&, const GridChange& change) {
  return FrequencyVectors::axial(on_axis(*trained.x, change, change.scale.x),
                                 on_axis(*trained.y, change, change.scale.y), config.axis_order);
}

TrainedFrequencies load_mixed(const PositionConfig&, const PositionShape& shape,
                              const PositionWeights& weights) {
  const Shape expected{2, shape.depth, shape.num_heads, num_frequencies_1d(shape.head_dim)};
  VIT_CHECK(weights.mixed_frequencies.shape() == expected, kRope, "rotation frequencies ",
            weights.mixed_frequencies.shape().to_string(), ", expected ", expected.to_string());
  return {.x = {}, .y = {}, .mixed = MixedFrequencies(weights.mixed_frequencies)};
}

FrequencyVectors mixed_vectors(const TrainedFrequencies& trained, const PositionConfig& config,
                               const PositionShape&, const GridChange& change) {
  return FrequencyVectors::mixed(
      change.is_scaled ? scale_frequencies(*trained.mixed, change.scaling, change.scale) : *trained.mixed,
      config.axis_order);
}

TrainedFrequencies load_volume(const PositionConfig& config, const PositionShape& shape,
                               const PositionWeights&) {
  return {.x = RopeFrequencies::from_theta(num_volume_frequencies(shape.head_dim), config.theta),
          .y = {},
          .mixed = {}};
}

FrequencyVectors volume_vectors(const TrainedFrequencies& trained, const PositionConfig&,
                                const PositionShape& shape, const GridChange&) {
  return FrequencyVectors::volume(*trained.x, shape.head_dim);
}

FrequencyVectors volume_pair_vectors(const TrainedFrequencies& trained, const PositionConfig&,
                                     const PositionShape& shape, const GridChange&) {
  return FrequencyVectors::volume_pairs(*trained.x, shape.head_dim);
}

/// One kind of rotation: a row of the only table that knows the kinds.
struct RotationKind {
  TrainedFrequencies (*load)(const PositionConfig&, const PositionShape&, const PositionWeights&);
  FrequencyVectors (*vectors)(const TrainedFrequencies&, const PositionConfig&, const PositionShape&,
                              const GridChange&);
  RopeAngles angles;  // per pair, or per channel
  bool has_time;      // a third axis
};

const RotationKind& kind_of(RopeKind kind) {
  static constexpr RotationKind kAxial{load_axial, axial_vectors, RopeAngles::per_pair, false};
  static constexpr RotationKind kMixed{load_mixed, mixed_vectors, RopeAngles::per_pair, false};
  static constexpr RotationKind kVolume{load_volume, volume_vectors, RopeAngles::per_channel, true};
  static constexpr RotationKind kVolumePairs{load_volume, volume_pair_vectors, RopeAngles::per_pair, true};
  switch (kind) {
    case RopeKind::none: break;
    case RopeKind::axial: return kAxial;
    case RopeKind::mixed: return kMixed;
    case RopeKind::volume: return kVolume;
    case RopeKind::volume_pairs: return kVolumePairs;
  }
  fail(kRope, "no rotation of kind ", static_cast<int>(kind));
}

// ---------------------------------------------------------------------------- the steps of the pipeline

/// The grid in which coordinates count.
enum class Frame { grid, window };

GridCoords coordinates(const PositionConfig& config, const PositionShape& shape, const GridChange& change,
                       const PatchSequence& sequence, Frame frame) {
  const CoordinateOptions options = coordinate_options(config);
  const GridCoords raster =
      frame == Frame::window          ? window_coords(sequence.grid, shape.window, options)
      : change.is_scaled              ? extrapolated_coords(sequence.grid, shape.trained_grid, options)
      : kind_of(config.rope).has_time ? clip_coords(sequence.num_steps, sequence.grid, options)
                                      : grid_coords(sequence.grid, options);
  return sequence.windows ? reordered(raster, sequence.windows->patches) : raster;
}

/// Coordinates of the cells of all windows, window by window, those of the grid before those that complete a
/// window.
GridCoords completed_coords(GridSize grid, std::size_t window, const CoordinateOptions& options) {
  const GridSize whole{round_up(grid.rows, window), round_up(grid.columns, window)};
  const WindowOrder order = order_by_windows(whole, window);
  std::vector<std::uint32_t> cells(order.patches.begin(), order.patches.end());
  for (std::size_t i = 0; i + 1 < order.starts.size(); ++i) {
    std::stable_partition(cells.begin() + static_cast<std::ptrdiff_t>(order.starts[i]),
                          cells.begin() + static_cast<std::ptrdiff_t>(order.starts[i + 1]),
                          [&](std::uint32_t cell) {
                            return cell / whole.columns < grid.rows && cell % whole.columns < grid.columns;
                          });
  }
  return reordered(window_coords(whole, window, options), cells);
}

/// Angles (N, A) of patches after those of the prefix: the class token has its own, others are not rotated.
Tensor<double> after_prefix(Tensor<double> angles, std::size_t num_prefix,
                            std::span<const double> class_angles) {
  if (class_angles.empty()) return angles;
  Tensor<double> out(Shape{num_prefix + angles.dim(0), angles.dim(1)});
  std::ranges::copy(class_angles, out.data());
  std::ranges::copy(angles.flat(), out.data() + num_prefix * angles.dim(1));
  return out;
}

void check_weights(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights) {
  VIT_CHECK((config.rope == RopeKind::mixed) == !weights.mixed_frequencies.empty(), kRope,
            "learned rotation frequencies ", weights.mixed_frequencies.shape().to_string(),
            config.rope == RopeKind::mixed ? ", expected some" : " although the config does not use them");
  const bool wants_periods = config.rope == RopeKind::axial && config.frequencies == AxisFrequencies::stored;
  VIT_CHECK(wants_periods == !weights.periods.empty(), kRope, weights.periods.size(), " stored periods",
            wants_periods ? ", expected some" : " although the config does not use them");
  const std::size_t num_angles = config.class_angles ? shape.head_dim / 2 : 0;
  VIT_CHECK(weights.class_angles.size() == num_angles, kRope, weights.class_angles.size(),
            " angles of the class token, expected ", num_angles);
  VIT_CHECK(config.rope == RopeKind::none ||
                (config.coordinates != CoordinateRule::scaled_to_reference &&
                 config.coordinates != CoordinateRule::corners) ||
                (config.reference_grid.rows > 0 && config.reference_grid.columns > 0),
            kRope, "scaled coordinates need a reference grid, got ",
            position::to_string(config.reference_grid));
  VIT_CHECK(!config.rope_scaling || config.rope != RopeKind::none, kRope.with(ErrorKind::argument),
            "RoPE scaling is requested, but the model has no rotary positions");
  VIT_CHECK(config.rope != RopeKind::mixed || !config.rope_scaling || !config.rope_scaling->truncate,
            kRope.with(ErrorKind::argument),
            "truncate needs ordered frequencies; those of this model are learned");
}

}  // namespace

RopeFactors RopeOfGrid::of_block(std::size_t layer) const {
  if (tables.empty()) return {};
  if (layer < table_of_block.size()) return tables[table_of_block[layer]].factors();
  if (tables.size() == 1) return tables.front().factors();
  VIT_CHECK(layer < tables.size(), "PositionContext", "no factors for layer ", layer, " of ", tables.size());
  return tables[layer].factors();
}

std::size_t RopeOfGrid::bytes() const {
  std::size_t numbers = 0;
  const auto add = [&](const RopeTable<float>& table) {
    const RopeFactors factors = table.factors();
    numbers += 2 * factors.num_heads * factors.num_patches * factors.num_angles();  // cos and sin
  };
  std::ranges::for_each(tables, add);
  if (of_completed) add(*of_completed);
  return numbers * sizeof(float);
}

RopeEncoding::RopeEncoding(const PositionConfig& config, const PositionShape& shape,
                           const PositionWeights& weights)
    : config_(config),
      shape_(shape),
      class_angles_(weights.class_angles.begin(), weights.class_angles.end()) {
  check_weights(config, shape, weights);
  shape_.global_blocks = {};
  if (config.rope != RopeKind::none) frequencies_ = kind_of(config.rope).load(config, shape, weights);
  if (!config.per_window) return;
  in_windows_.assign(shape.depth, 1);
  for (const std::size_t block : shape.global_blocks) in_windows_.at(block) = 0;
}

bool RopeEncoding::has_time() const noexcept {
  return config_.rope != RopeKind::none && kind_of(config_.rope).has_time;
}

RopeOfGrid RopeEncoding::of_grid(const PatchSequence& sequence) const {
  if (config_.rope == RopeKind::none) return {};
  const RotationKind& kind = kind_of(config_.rope);
  const GridChange change = change_of(config_, sequence.grid, shape_.trained_grid);
  RopeOfGrid out{.tables = {}, .table_of_block = in_windows_, .with_prefix = !class_angles_.empty()};
  if (config_.rope_scaling)
    out.logit_factor = logit_factor(change.scaling, change.scale, sequence.grid, shape_.trained_grid);

  const auto add = [&](Frame frame) {
    const GridCoords coords = coordinates(config_, shape_, change, sequence, frame);
    const FrequencyVectors frequencies = kind.vectors(frequencies_, config_, shape_, change);
    for (std::size_t layer = 0; layer < frequencies.num_layers(); ++layer) {
      Tensor<double> angles = rope_angles(coords, frequencies, layer);
      if (frame == Frame::grid) angles = after_prefix(std::move(angles), shape_.num_prefix, class_angles_);
      out.tables.emplace_back(angles, config_.pairing, kind.angles);
    }
  };
  add(Frame::grid);
  if (!in_windows_.empty()) add(Frame::window);
  if (!in_windows_.empty() && shape_.completes_windows) {
    const GridCoords coords = completed_coords(sequence.grid, shape_.window, coordinate_options(config_));
    const FrequencyVectors frequencies = kind.vectors(frequencies_, config_, shape_, change);
    out.of_completed.emplace(rope_angles(coords, frequencies, 0), config_.pairing, kind.angles);
  }
  return out;
}

}  // namespace vit::internal
