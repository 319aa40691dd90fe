#include "vit/rings/dense/heatmap_head.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

/// products (height, width, 4 x 4 x O) -> out (2 height, 2 width, O): out[2i - 1 + u] gets what pixel i has
/// for row u of its kernel, and columns alike; then bias and ReLU.
void add_overlaps(const FeatureMap& products, std::span<const float> bias, const FeatureMap& out,
                  int threads) {
  const std::size_t channels = out.channels();
  // the rows of the kernel that reach an output, and the input pixel of each: none beyond the edge
  const auto taps = [](std::size_t at, std::size_t size, auto&& take) {
    const std::size_t pixel = at / 2;
    take(pixel, at % 2 == 0 ? std::size_t{1} : std::size_t{2});
    if (at % 2 == 0 && pixel > 0) take(pixel - 1, std::size_t{3});
    if (at % 2 == 1 && pixel + 1 < size) take(pixel + 1, std::size_t{0});
  };
  parallel_for(out.height(), threads, [&](std::size_t y, int) {
    for (std::size_t x = 0; x < out.width(); ++x) {
      float* const to = out.row(static_cast<std::ptrdiff_t>(y)) + x * channels;
      std::ranges::copy(bias, to);
      taps(y, products.height(), [&](std::size_t row, std::size_t u) {
        taps(x, products.width(), [&](std::size_t column, std::size_t v) {
          const float* const from =
              products.row(static_cast<std::ptrdiff_t>(row)) + (column * 16 + u * 4 + v) * channels;
          for (std::size_t c = 0; c < channels; ++c) to[c] += from[c];
        });
      });
      for (std::size_t c = 0; c < channels; ++c) to[c] = std::max(to[c], 0.0f);
    }
  });
}

}  // namespace

HeatmapHead::HeatmapHead(HeatmapConfig config, HeatmapLayers layers, std::size_t num_prefix,
                         const kernels::KernelTable& kernels)
    : config_(config), layers_(std::move(layers)), num_prefix_(num_prefix), kernels_(&kernels) {}

std::size_t HeatmapHead::enlarged() const noexcept {
  return config_.decoder == HeatmapDecoder::simple ? config_.enlarged : 4;
}

Shape HeatmapHead::output_shape(std::size_t, GridSize grid) const {
  return {layers_.last.out_channels(), grid.rows * enlarged(), grid.columns * enlarged()};
}

void HeatmapHead::lay_out(TensorView<const float> tokens, MapSize patches, int threads,
                          DenseMemory& memory) const {
  const std::size_t width = tokens.num_columns();
  const MapSize doubled{patches.height * 2, patches.width * 2};
  const MapSize result{patches.height * enlarged(), patches.width * enlarged()};
  HeatmapMaps& maps = memory.heatmaps;
  memory.lay_out([&](Arena::Taker& arena) {
    maps.tokens = arena.take<float>({tokens.dim(0), width});
    if (config_.decoder == HeatmapDecoder::simple) {
      maps.enlarge =
          MapResize::take(arena, patches, result, width, static_cast<std::size_t>(resolve_threads(threads)));
      maps.enlarged = FeatureMap::take(arena, result, width);
    } else {
      maps.products[0] = FeatureMap::take(arena, patches, 16 * config_.channels);
      maps.doubled = FeatureMap::take(arena, doubled, config_.channels);
      maps.products[1] = FeatureMap::take(arena, doubled, 16 * config_.channels);
      maps.enlarged = FeatureMap::take(arena, result, config_.channels);
    }
    maps.scratch = take_scratch(arena, threads, layers_.last, layers_.doublings);
    maps.result = FeatureMap::take(arena, result, layers_.last.out_channels());
  });
}

void HeatmapHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                          std::span<const TensorView<float>> outputs, int num_threads,
                          DenseMemory& memory) const {
  VIT_CHECK(taps.size() == 1 && outputs.size() == 1, (Where{"HeatmapHead", ErrorKind::mismatch}), taps.size(),
            " taps and ", outputs.size(), " results for a head of 1 and 1");
  const TensorView<const float> tokens = taps.front();
  const TensorView<float> output = outputs.front();
  const MapSize patches{grid.rows, grid.columns};
  lay_out(tokens, patches, num_threads, memory);
  const HeatmapMaps& maps = memory.heatmaps;
  if (layers_.norm) {
    layers_.norm->forward(tokens, maps.tokens, num_threads);
  } else {
    std::ranges::copy(tokens.flat(), maps.tokens.data());
  }
  const TensorView<float> rows(maps.tokens.row(num_prefix_),
                               Shape{patches.height * patches.width, tokens.num_columns()});
  const FeatureMap in = FeatureMap::of_tokens(rows, patches);
  maps.enlarged.clear_border();
  if (config_.decoder == HeatmapDecoder::simple) {
    for (float& value : rows.flat()) value = std::max(value, 0.0f);
    maps.enlarge.fill(patches, Alignment::edges);
    resize_map(in, maps.enlarged, maps.enlarge, num_threads, kernels_->maps);
  } else {
    layers_.doublings[0].products.forward(in, maps.products[0], num_threads, maps.scratch);
    add_overlaps(maps.products[0], layers_.doublings[0].bias.flat(), maps.doubled, num_threads);
    layers_.doublings[1].products.forward(maps.doubled, maps.products[1], num_threads, maps.scratch);
    add_overlaps(maps.products[1], layers_.doublings[1].bias.flat(), maps.enlarged, num_threads);
  }
  layers_.last.forward(maps.enlarged, maps.result, num_threads, maps.scratch);
  const std::size_t keypoints = output.dim(0);
  parallel_for(output.dim(1), num_threads, [&](std::size_t y, int) {
    const float* const from = maps.result.row(static_cast<std::ptrdiff_t>(y));
    for (std::size_t k = 0; k < keypoints; ++k) {
      float* const to = output[k].row(y);
      for (std::size_t x = 0; x < output.dim(2); ++x) to[x] = from[x * keypoints + k];
    }
  });
}

}  // namespace vit::internal
