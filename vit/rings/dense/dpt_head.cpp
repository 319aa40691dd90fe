#include "vit/rings/dense/dpt_head.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"DptHead", ErrorKind::mismatch};

MapSize doubled(MapSize size) {
  return {2 * size.height, 2 * size.width};
}

MapSize map_of(GridSize grid) {
  return {grid.rows, grid.columns};
}

/// Rows of the result that a thread makes at a time: their maps stay in its L2 cache. Whole tiles of a
/// convolution.
std::size_t strip_rows(MapSize size, std::size_t channels) {
  constexpr std::size_t kFloats = std::size_t{1} << 17;
  constexpr std::size_t kTile = kernels::kConvolutionTile;
  const std::size_t rows = kFloats / std::max<std::size_t>(size.width * channels, 1);
  return std::clamp<std::size_t>(rows / kTile, 1, 4) * kTile;
}

}  // namespace

DptHead::DptHead(DptConfig config, DptLayers layers, std::size_t patch_size, std::size_t num_prefix,
                 const kernels::KernelTable& kernels)
    : config_(std::move(config)),
      layers_(std::move(layers)),
      patch_size_(patch_size),
      num_prefix_(num_prefix),
      kernels_(&kernels) {
  VIT_CHECK(layers_.extra || layers_.narrow, kWhere, "no convolution after the last fusion layer");
}

MapSize DptHead::tap_size(std::size_t tap, GridSize grid) const {
  MapSize size = map_of(grid);
  const DptTap& layers = layers_.taps[tap];
  if (layers.enlarge) size = layers.enlarge->out_size(size);
  return layers.reduce ? layers.reduce->out_size(size) : size;
}

/// The size of the map after the last fusion layer.
MapSize DptHead::fused_size(GridSize grid) const {
  if (config_.fusion_size == FusionSize::next_map) return doubled(tap_size(0, grid));
  MapSize size = tap_size(layers_.taps.size() - 1, grid);
  for (std::size_t i = 0; i < layers_.fusions.size(); ++i) size = doubled(size);
  return size;
}

MapSize DptHead::output_size(GridSize grid) const {
  switch (config_.head_size) {
    case HeadSize::fused: return fused_size(grid);
    case HeadSize::doubled: return doubled(fused_size(grid));
    case HeadSize::patches: break;
  }
  return {grid.rows * patch_size_, grid.columns * patch_size_};
}

Shape DptHead::output_shape(std::size_t output, GridSize grid) const {
  const MapSize size = output_size(grid);
  return {layers_.outputs[output].finish.num_planes(), size.height, size.width};
}

/// Sizes and tables of the fusion layers.
void DptHead::plan_fusions(Arena::Taker& arena, GridSize grid, std::size_t threads, DptMaps& maps) const {
  const std::size_t count = layers_.fusions.size(), features = config_.features;
  maps.fusions.resize(count);
  MapSize size = tap_size(count - 1, grid);  // of x
  for (std::size_t i = 0; i < count; ++i) {
    FusionMaps& fusion = maps.fusions[i];
    fusion.size = size;
    fusion.lateral_size = tap_size(count - 1 - i, grid);
    if (fusion.lateral_size != size)
      fusion.lateral_resize = MapResize::take(arena, fusion.lateral_size, size, features, threads);
    const bool to_next = config_.fusion_size == FusionSize::next_map && i + 1 < count;
    const MapSize next = to_next ? tap_size(count - 2 - i, grid) : doubled(size);
    fusion.enlarge = MapResize::take(arena, size, next, features, threads);
    maps.fused = size = next;
  }
}

/// Maps of the fusion layers from `first` on: those of one are not alive with those of another.
void DptHead::take_fusions(Arena::Taker& arena, std::size_t first, DptMaps& maps) const {
  if (first == maps.fusions.size()) return;
  FusionMaps& fusion = maps.fusions[first];
  arena.share(
      [&] {
        fusion.lateral = FeatureMap::take(arena, fusion.lateral_size, config_.features);
        fusion.resized = {};
        if (fusion.lateral_size != fusion.size)
          fusion.resized = FeatureMap::take(arena, fusion.size, config_.features);
        if (first != 0) fusion.x = FeatureMap::take(arena, fusion.size, config_.features);
      },
      [&] { take_fusions(arena, first + 1, maps); });
}

/// Maps of the taps from `first` on, which are computed one after the other.
void DptHead::take_taps(Arena::Taker& arena, GridSize grid, std::size_t first, DptMaps& maps) const {
  if (first == maps.taps.size()) return;
  const DptTap& layers = layers_.taps[first];
  DptMaps::Tap& tap = maps.taps[first];
  const std::size_t channels = layers.projection.out_channels();
  arena.share(
      [&] {
        tap.projected = FeatureMap::take(arena, map_of(grid), channels);
        if (layers.enlarge || layers.reduce)
          tap.resized = FeatureMap::take(arena, tap_size(first, grid), channels);
      },
      [&] { take_taps(arena, grid, first + 1, maps); });
}

/// Maps after the last fusion layer.
void DptHead::take_results(Arena::Taker& arena, GridSize grid, std::size_t threads, DptMaps& maps) const {
  const MapSize out = output_size(grid), fused = maps.fused;
  const auto strip_floats = [](std::size_t rows, std::size_t columns, std::size_t channels) {
    return FeatureMap::num_floats({rows, columns}, channels);
  };
  if (layers_.extra) maps.extra = FeatureMap::take(arena, fused, config_.extra_channels);
  std::size_t channels = layers_.extra ? config_.extra_channels : config_.features;
  if (layers_.narrow) {
    channels = layers_.narrow->out_channels();
    maps.narrow = FeatureMap::take(arena, fused, channels);
  }
  std::size_t hidden = 1, last = 1;
  for (const DptOutput& output : layers_.outputs) {
    if (output.hidden) hidden = std::max(hidden, output.hidden->out_channels());
    last = std::max(last, output.last.out_channels());
  }
  const std::size_t rows = strip_rows(out, channels);
  const std::size_t fused_rows = strip_rows(fused, config_.features);
  if (config_.head_size != HeadSize::fused)
    maps.enlarge = MapResize::take(arena, fused, out, channels, threads);
  maps.strip =
      arena.take<float>({threads, std::max(strip_floats(rows + 2, out.width, channels),
                                           strip_floats(fused_rows + 2, fused.width, config_.features))});
  maps.strip_hidden = arena.take<float>({threads, strip_floats(rows, out.width, hidden)});
  maps.strip_out = arena.take<float>({threads, strip_floats(rows, out.width, last)});
}

void DptHead::lay_out(GridSize grid, int num_threads, DenseMemory& memory) const {
  const auto threads = static_cast<std::size_t>(resolve_threads(num_threads));
  const std::size_t width = layers_.taps.front().projection.in_channels();
  const std::size_t patches = checked_mul(grid.rows, grid.columns, kWhere);
  memory.lay_out([&](Arena::Taker& arena) {
    DptMaps& maps = memory.dpt;
    maps.taps.resize(layers_.taps.size());
    plan_fusions(arena, grid, threads, maps);
    maps.scratch = take_scratch(arena, num_threads, layers_.taps, layers_.fusions, layers_.extra,
                                layers_.narrow, layers_.outputs);
    std::size_t largest = 0;
    for (const FusionMaps& fusion : maps.fusions)
      largest = std::max(largest, FeatureMap::num_floats(fusion.size, config_.features));
    arena.share([&] { maps.hidden = arena.take<float>({largest}); },
                [&] {
                  maps.tokens = arena.take<float>({num_prefix_ + patches, width});
                  if (config_.readout == ClassReadout::projected) {
                    maps.readout = arena.take<float>({patches, width});
                    maps.bias = arena.take<float>({width});
                  }
                  take_taps(arena, grid, 0, maps);
                });
    arena.share([&] { take_fusions(arena, 0, maps); }, [&] { take_results(arena, grid, threads, maps); });
  });
}

/// The patches of a tap as input of its projection.
FeatureMap DptHead::read_out(const DptTap& tap, TensorView<float> tokens, MapSize grid, int threads,
                             const DptMaps& maps) const {
  const std::size_t width = tokens.num_columns(), patches = grid.height * grid.width;
  const TensorView<float> rows(tokens.row(num_prefix_), Shape{patches, width});
  const FeatureMap in = FeatureMap::of_tokens(rows, grid);
  const float* const token = tokens.row(0);
  if (config_.readout == ClassReadout::added) {
    for (std::size_t i = 0; i < patches; ++i) {
      for (std::size_t c = 0; c < width; ++c) rows.row(i)[c] += token[c];
    }
  }
  if (config_.readout != ClassReadout::projected) return in;
  // W (patch, class) + b: what the class token contributes is the same for all patches
  for (std::size_t o = 0; o < width; ++o) {
    double sum = tap.class_bias.data()[o];
    const float* const weight = tap.class_readout.view().row(o);
    for (std::size_t c = 0; c < width; ++c) sum += static_cast<double>(weight[c]) * token[c];
    maps.bias.data()[o] = static_cast<float>(sum);
  }
  const FeatureMap out = FeatureMap::of_tokens(maps.readout, grid);
  tap.readout->forward(in, out, threads, maps.scratch,
                       {.activation = config_.readout_activation, .bias = maps.bias.data()});
  return out;
}

/// tokens (T, C) -> out (size of the tap's map, F).
void DptHead::run_tap(std::size_t index, TensorView<const float> tokens, const FeatureMap& out, int threads,
                      const DptMaps& maps) const {
  const DptTap& tap = layers_.taps[index];
  if (layers_.norm) {
    layers_.norm->forward(tokens, maps.tokens, threads);
  } else {
    std::ranges::copy(tokens.flat(), maps.tokens.data());
  }
  const FeatureMap projected = maps.taps[index].projected;
  const FeatureMap patches = read_out(tap, maps.tokens, projected.size(), threads, maps);
  projected.clear_border();
  tap.projection.forward(patches, projected, threads, maps.scratch);
  FeatureMap resized = projected;
  if (tap.enlarge || tap.reduce) {
    resized = maps.taps[index].resized;
    resized.clear_border();
    if (tap.enlarge) tap.enlarge->forward(projected, resized, threads, maps.scratch);
    if (tap.reduce) tap.reduce->forward(projected, resized, threads, maps.scratch);
  }
  out.clear_border();
  tap.neck.forward(resized, out, threads, maps.scratch);
}

/// x += unit(x) + added.
void DptHead::add_unit(const ResidualUnit& unit, const FeatureMap& x, const FeatureMap& added, int threads,
                       const DptMaps& maps) const {
  const FeatureMap hidden = FeatureMap::over(maps.hidden, x.size(), x.channels());
  hidden.clear_border();
  unit.conv1.forward(x, hidden, threads, maps.scratch, {.activation = Activation::relu, .in_relu = true});
  unit.conv2.forward(hidden, x, threads, maps.scratch, {.residual = x, .second = added});
}

/// The map of a fusion layer before it is enlarged.
FeatureMap DptHead::fuse(std::size_t index, int threads, const DptMaps& maps) const {
  const FusionMaps& fusion = maps.fusions[index];
  const DptFusion& layers = layers_.fusions[index];
  FeatureMap x = fusion.lateral;
  if (!fusion.resized.empty()) {
    fusion.lateral_resize.fill(x.size(), Alignment::edges);
    fusion.resized.clear_border();
    resize_map(x, fusion.resized, fusion.lateral_resize, threads, kernels_->maps);
    x = fusion.resized;
  }
  if (index != 0) add_unit(*layers.lateral, x, fusion.x, threads, maps);
  add_unit(layers.unit, x, {}, threads, maps);
  // a product of single pixels commutes with an interpolation, and there are fewer pixels before it
  const FeatureMap projected = FeatureMap::over(maps.hidden, x.size(), x.channels());
  layers.projection.forward(x, projected, threads, maps.scratch);
  fusion.enlarge.fill(x.size(), Alignment::corners);
  return projected;
}

/// Rows of an enlarged map of that size, with what is above, below and next to them, for a convolution in one
/// thread. Without a `resize` the map itself has the size.
FeatureMap DptHead::enlarged_rows(const FeatureMap& in, const MapResize* resize, MapSize size, RowRange rows,
                                  std::size_t thread, const DptMaps& maps) const {
  const FeatureMap strip =
      FeatureMap::over({maps.strip.row(thread), Shape{1}}, {rows.count + 2, size.width}, in.channels());
  strip.clear_border();
  for (std::size_t i = 0; i < rows.count + 2; ++i) {
    const std::size_t y = rows.first + i;  // plus one
    float* const to = strip.row(static_cast<std::ptrdiff_t>(i));
    if (y == 0 || y > size.height) {
      std::fill_n(to, size.width * in.channels(), 0.0f);
    } else if (resize == nullptr) {
      std::copy_n(in.row(static_cast<std::ptrdiff_t>(y - 1)), size.width * in.channels(), to);
    } else {
      resize->row(in, y - 1, thread, kernels_->maps, to);
    }
  }
  return {strip.row(1), {rows.count, size.width}, in.channels(), strip.row_stride(), true};
}

/// convolution(enlarged map) -> out, by strips: the enlarged map would be the largest of all.
void DptHead::convolve_enlarged(const Convolution& convolution, const FeatureMap& in,
                                const MapResize& enlarge, const FeatureMap& out, Activation activation,
                                int threads, const DptMaps& maps) const {
  const std::size_t at_once = strip_rows(out.size(), in.channels());
  out.clear_border();
  parallel_for(ceil_div(out.height(), at_once), threads, [&](std::size_t task, int thread_number) {
    const auto thread = static_cast<std::size_t>(thread_number);
    const RowRange rows{task * at_once, std::min(at_once, out.height() - task * at_once)};
    const FeatureMap strip = enlarged_rows(in, &enlarge, out.size(), rows, thread, maps);
    const FeatureMap to(out.row(static_cast<std::ptrdiff_t>(rows.first)), strip.size(), out.channels(),
                        out.row_stride(), true);
    convolution.forward_in_thread(strip, to, maps.scratch.row(thread), {.activation = activation});
  });
}

/// Rows of the result, in one thread.
void DptHead::finish_strip(const FeatureMap& in, const MapResize* resize, RowRange rows,
                           std::span<const TensorView<float>> outputs, std::size_t thread,
                           const DptMaps& maps) const {
  const MapSize whole{outputs.front().dim(1), outputs.front().dim(2)}, size{rows.count, whole.width};
  const FeatureMap strip = enlarged_rows(in, resize, whole, rows, thread, maps);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const DptOutput& output = layers_.outputs[o];
    FeatureMap hidden = strip;
    if (output.hidden) {
      hidden =
          FeatureMap::over({maps.strip_hidden.row(thread), Shape{1}}, size, output.hidden->out_channels());
      output.hidden->forward_in_thread(strip, hidden, maps.scratch.row(thread),
                                       {.activation = Activation::relu});
    }
    const FeatureMap last =
        FeatureMap::over({maps.strip_out.row(thread), Shape{1}}, size, output.last.out_channels());
    output.last.forward_in_thread(hidden, last, maps.scratch.row(thread));
    for (std::size_t i = 0; i < rows.count; ++i)
      output.finish.finish_row(last.row(static_cast<std::ptrdiff_t>(i)), rows.first + i, outputs[o]);
  }
}

/// `in` is the map of the last fusion layer before it is enlarged.
void DptHead::finish(const FeatureMap& in, std::span<const TensorView<float>> outputs, int threads,
                     const DptMaps& maps) const {
  const MapResize& to_fused = maps.fusions.back().enlarge;
  const Activation of_extra = config_.extra_relu ? Activation::relu : Activation::none;
  const Activation of_narrow =
      config_.layers == HeadLayersKind::classes ? Activation::relu : Activation::none;
  FeatureMap x = in;
  if (layers_.extra) {
    convolve_enlarged(*layers_.extra, x, to_fused, maps.extra, of_extra, threads, maps);
    x = maps.extra;
  }
  if (layers_.narrow && layers_.extra) {
    maps.narrow.clear_border();
    layers_.narrow->forward(x, maps.narrow, threads, maps.scratch, {.activation = of_narrow});
  } else if (layers_.narrow) {
    convolve_enlarged(*layers_.narrow, x, to_fused, maps.narrow, of_narrow, threads, maps);
  }
  if (layers_.narrow) x = maps.narrow;
  const bool enlarges = config_.head_size != HeadSize::fused;
  if (enlarges) maps.enlarge.fill(x.size(), Alignment::corners);
  const std::size_t height = outputs.front().dim(1);
  const std::size_t rows = strip_rows({height, outputs.front().dim(2)}, x.channels());
  parallel_for(ceil_div(height, rows), threads, [&](std::size_t task, int thread) {
    const std::size_t first = task * rows;
    finish_strip(x, enlarges ? &maps.enlarge : nullptr, {first, std::min(rows, height - first)}, outputs,
                 static_cast<std::size_t>(thread), maps);
  });
}

void DptHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                      std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const {
  VIT_CHECK(taps.size() == layers_.taps.size() && outputs.size() == layers_.outputs.size(), kWhere,
            taps.size(), " taps and ", outputs.size(), " results for a head of ", layers_.taps.size(),
            " and ", layers_.outputs.size());
  lay_out(grid, threads, memory);
  const DptMaps& maps = memory.dpt;
  const std::size_t count = layers_.taps.size();
  FeatureMap fused;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = count - 1 - i;
    run_tap(k, taps[k], maps.fusions[i].lateral, threads, maps);
    fused = fuse(i, threads, maps);
    if (i + 1 == count) break;
    const FeatureMap& out = maps.fusions[i + 1].x;
    out.clear_border();
    resize_map(fused, out, maps.fusions[i].enlarge, threads, kernels_->maps);
  }
  finish(fused, outputs, threads, maps);
}

}  // namespace vit::internal
