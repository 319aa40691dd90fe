#include "vit/rings/dense/linear_map_head.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {

LinearMapHead::LinearMapHead(LinearMapConfig config, LinearMapLayers layers, std::size_t num_prefix,
                             const kernels::KernelTable& kernels)
    : config_(config), layers_(std::move(layers)), num_prefix_(num_prefix), kernels_(&kernels) {}

void LinearMapHead::add_tap(const LinearMapTap& tap, TensorView<const float> tokens, bool first, int threads,
                            const LinearMaps& maps) const {
  const std::size_t width = tokens.num_columns(), outputs = maps.scores.channels();
  if (layers_.norm) {
    layers_.norm->forward(tokens, maps.tokens, threads);
  } else {
    std::ranges::copy(tokens.flat(), maps.tokens.data());
  }
  const float* const token = maps.tokens.row(0);
  for (std::size_t o = 0; o < outputs; ++o) {
    double sum = first ? double{layers_.bias.data()[o]} : 0.0;
    if (!tap.class_weights.empty()) {
      const float* const weight = tap.class_weights.view().row(o);
      for (std::size_t c = 0; c < width; ++c) sum += static_cast<double>(weight[c]) * token[c];
    }
    maps.bias.data()[o] = static_cast<float>(sum);
  }
  const MapSize grid = maps.scores.size();
  const TensorView<float> rows(maps.tokens.row(num_prefix_), Shape{grid.height * grid.width, width});
  tap.patches.forward(FeatureMap::of_tokens(rows, grid), maps.scores, threads, {},
                      {.residual = first ? FeatureMap() : maps.scores, .bias = maps.bias.data()});
}

void LinearMapHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                            std::span<const TensorView<float>> outputs, int num_threads,
                            DenseMemory& memory) const {
  VIT_CHECK(taps.size() == layers_.taps.size() && outputs.size() == 1,
            (Where{"LinearMapHead", ErrorKind::mismatch}), taps.size(), " taps and ", outputs.size(),
            " results for a head of ", layers_.taps.size(), " and 1");
  const auto threads = static_cast<std::size_t>(resolve_threads(num_threads));
  const TensorView<float> output = outputs.front();
  const std::size_t channels = layers_.bias.num_elements();
  const MapSize size{output.dim(1), output.dim(2)}, patches{grid.rows, grid.columns};
  LinearMaps& maps = memory.linear;
  memory.lay_out([&](Arena::Taker& arena) {
    maps.tokens = arena.take<float>({taps.front().dim(0), taps.front().dim(1)});
    maps.bias = arena.take<float>({channels});
    maps.scores = FeatureMap::take(arena, patches, channels);
    maps.enlarge = MapResize::take(arena, patches, size, channels, threads);
    maps.row = arena.take<float>({threads, round_up(checked_mul(size.width, channels, "LinearMapHead"), 16)});
  });
  for (std::size_t k = 0; k < taps.size(); ++k) add_tap(layers_.taps[k], taps[k], k == 0, num_threads, maps);
  maps.enlarge.fill(patches, Alignment::edges);
  parallel_for(size.height, num_threads, [&](std::size_t y, int thread) {
    float* const row = maps.row.row(static_cast<std::size_t>(thread));
    maps.enlarge.row(maps.scores, y, static_cast<std::size_t>(thread), kernels_->maps, row);
    layers_.finish.finish_row(row, y, output);
  });
}

}  // namespace vit::internal
