#include "vit/rings/dense/mask_head.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"MaskHead", ErrorKind::mismatch};

/// Rows of tokens as pixels of one row, for products of single pixels.
FeatureMap row_of(TensorView<float> rows) {
  return FeatureMap::of_tokens(rows, {1, rows.num_rows()});
}

}  // namespace

MaskHead::MaskHead(MaskConfig config, MaskLayers layers, std::size_t num_prefix,
                   const kernels::KernelTable& kernels)
    : config_(config),
      layers_(std::move(layers)),
      num_prefix_(num_prefix),
      linear_(kernels.float32->linear) {}

Shape MaskHead::output_shape(std::size_t output, GridSize grid) const {
  if (output == 1) return {1, num_queries(), num_classes()};
  const MapSize size = mask_size(grid);
  return {num_queries(), size.height, size.width};
}

void MaskHead::lay_out(TensorView<const float> tokens, GridSize grid, int threads,
                       DenseMemory& memory) const {
  const std::size_t width = tokens.num_columns(), queries = num_queries();
  const MapSize result = mask_size(grid);
  memory.masks.doublings.resize(config_.doublings);
  memory.lay_out([&](Arena::Taker& arena) {
    MaskMaps& maps = memory.masks;
    maps.tokens = arena.take<float>({tokens.num_rows(), width});
    maps.hidden = row_of(arena.take<float>({queries, width}));
    maps.queries = row_of(arena.take<float>({queries, width}));
    MapSize size{grid.rows, grid.columns};
    for (MaskMaps::Doubling& doubling : maps.doublings) {
      size = {2 * size.height, 2 * size.width};
      doubling.up = FeatureMap::take(arena, size, width);
      doubling.smooth = FeatureMap::take(arena, size, width);
    }
    maps.packed =
        arena.take<std::byte>({linear_->packed_bytes(round_up(queries, linear_->panel_columns), width)});
    maps.rows = arena.take<float>({static_cast<std::size_t>(resolve_threads(threads)),
                                   round_up(checked_mul(result.width, queries, kWhere), 16)});
    maps.scratch = take_scratch(arena, threads, layers_.mlp, layers_.doublings);
  });
}

FeatureMap MaskHead::enlarge(FeatureMap map, int threads, const MaskMaps& maps) const {
  for (std::size_t i = 0; i < config_.doublings; ++i) {
    const MapDoubling& layers = layers_.doublings[i];
    const auto& [up, smooth] = maps.doublings[i];
    up.clear_border();
    layers.up.forward(map, up, threads, maps.scratch, config_.activation);
    parallel_for(up.height(), threads, [&, from = up, to = smooth](std::size_t y, int) {
      float* const row = to.row(static_cast<std::ptrdiff_t>(y));
      layers.smooth.forward_row(from, y, row);
      const TensorView<float> pixels(row, Shape{to.width(), to.channels()});
      layers.norm.forward_rows(pixels, pixels, 0, to.width());
    });
    map = smooth;
  }
  return map;
}

/// masks (Q, height, width) = queries (Q, C) times the pixels of the map.
void MaskHead::multiply(const FeatureMap& queries, const FeatureMap& map, TensorView<float> masks,
                        int threads, const MaskMaps& maps) const {
  const std::size_t count = num_queries(), width = map.channels();
  linear_->pack({.weight = queries.row(0),
                 .stride = width,
                 .out_features = count,
                 .in_features = width,
                 .packed = maps.packed.data()});
  parallel_for(map.height(), threads, [&](std::size_t y, int thread) {
    float* const row = maps.rows.row(static_cast<std::size_t>(thread));
    linear_->gemm({.in = reinterpret_cast<const std::byte*>(map.row(static_cast<std::ptrdiff_t>(y))),
                   .in_step = width * sizeof(float),
                   .rows = map.width(),
                   .packed = maps.packed.data(),
                   .in_features = width,
                   .column_begin = 0,
                   .column_end = count,
                   .out = row,
                   .out_stride = count});
    for (std::size_t q = 0; q < count; ++q) {
      float* const to = masks[q].row(y);
      for (std::size_t x = 0; x < map.width(); ++x) to[x] = row[x * count + q];
    }
  });
}

void MaskHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                       std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const {
  VIT_CHECK(taps.size() == 1 && outputs.size() == 2, kWhere, taps.size(), " taps and ", outputs.size(),
            " results for a head of 1 and 2");
  compute(taps.front(), grid, outputs[0], outputs[1], threads, memory);
}

void MaskHead::compute(TensorView<const float> tokens, GridSize grid, TensorView<float> masks,
                       TensorView<float> classes, int threads, DenseMemory& memory) const {
  const std::size_t patches = grid.rows * grid.columns, queries = num_queries();
  VIT_CHECK(tokens.num_rows() == queries + num_prefix_ + patches, kWhere, tokens.num_rows(), " tokens for ",
            queries, " queries, ", num_prefix_, " others and ", patches, " patches");
  lay_out(tokens, grid, threads, memory);
  const MaskMaps& maps = memory.masks;
  layers_.norm.forward(tokens, maps.tokens, threads);
  const FeatureMap first = row_of({maps.tokens.data(), Shape{queries, tokens.num_columns()}});
  const MapEpilogue activated{.activation = config_.activation};
  layers_.mlp[0].forward(first, maps.queries, threads, maps.scratch, activated);
  layers_.mlp[1].forward(maps.queries, maps.hidden, threads, maps.scratch, activated);
  layers_.mlp[2].forward(maps.hidden, maps.queries, threads, maps.scratch);
  if (!classes.empty())
    layers_.classes.forward(first, row_of({classes.data(), Shape{queries, num_classes()}}), threads, {});
  const TensorView<float> last(maps.tokens.row(queries + num_prefix_), Shape{patches, tokens.num_columns()});
  const FeatureMap map = enlarge(FeatureMap::of_tokens(last, {grid.rows, grid.columns}), threads, maps);
  multiply(maps.queries, map, masks, threads, maps);
}

}  // namespace vit::internal
