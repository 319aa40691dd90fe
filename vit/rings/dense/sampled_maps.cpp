#include "vit/rings/dense/sampled_maps.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"

namespace vit::internal {
namespace {

/// Channels [from_first, from_first + count) of each pixel to those of `to` from to_first on.
struct ChannelRange {
  std::size_t from_first = 0, to_first = 0, count = 0;
};

void copy_channels(const FeatureMap& from, const FeatureMap& to, ChannelRange range, int threads) {
  parallel_for(from.height(), threads, [&](std::size_t y, int) {
    const float* in = from.row(static_cast<std::ptrdiff_t>(y)) + range.from_first;
    float* out = to.row(static_cast<std::ptrdiff_t>(y)) + range.to_first;
    for (std::size_t x = 0; x < from.width(); ++x, in += from.channels(), out += to.channels())
      std::copy_n(in, range.count, out);
  });
}

/// A map with a border of zeros in this memory.
FeatureMap bordered(TensorView<float> memory, MapSize size, std::size_t channels) {
  const FeatureMap out = FeatureMap::over(memory, size, channels);
  out.clear_border();
  return out;
}

}  // namespace

float activated(float x, Activation activation) {
  switch (activation) {
    case Activation::silu: return static_cast<float>(x * sigmoid(double{x}));
    case Activation::gelu: return rounded_gelu(x);
    case Activation::relu: return std::max(x, 0.0f);
    default: return x;
  }
}

void NormedConvolution::forward(const FeatureMap& in, const FeatureMap& out, int threads,
                                TensorView<float> scratch) const {
  convolution.forward(in, out, threads, scratch);
  parallel_for(out.height(), threads, [&](std::size_t y, int) {
    const TensorView<float> pixels(out.row(static_cast<std::ptrdiff_t>(y)),
                                   Shape{out.width(), out.channels()});
    if (norm) norm->forward_rows(pixels, pixels, 0, out.width());
    if (activation == Activation::none) return;
    for (float& value : pixels.flat()) value = activated(value, activation);
  });
}

SampledMap::SampledMap(MapScale scale, std::size_t tap_channels, SampledMapLayers layers)
    : scale_(scale), tap_channels_(tap_channels), layers_(std::move(layers)) {}

MapSize SampledMap::size(GridSize grid) const {
  switch (scale_) {
    case MapScale::half: return {ceil_div(grid.rows, 2), ceil_div(grid.columns, 2)};
    case MapScale::twice: return {2 * grid.rows, 2 * grid.columns};
    case MapScale::same: break;
  }
  return {grid.rows, grid.columns};
}

SampledMapFloats SampledMap::floats(GridSize grid) const {
  const MapSize out = size(grid), in{grid.rows, grid.columns};
  const std::size_t of_tap = joined_channels() / layers_.taps.size();
  return {.patches = FeatureMap::num_floats(in, tap_channels_),
          .resized = FeatureMap::num_floats(out, of_tap),
          .joined = FeatureMap::num_floats(out, std::max(joined_channels(), 2 * inner())),
          .stacked = FeatureMap::num_floats(out, layers_.merge.convolution.in_channels()),
          .inner = FeatureMap::num_floats(out, 2 * inner())};
}

std::size_t SampledMap::scratch_floats() const {
  std::size_t floats = std::max(
      {largest_scratch(layers_.taps), layers_.join.scratch_floats(), layers_.merge.scratch_floats()});
  for (const auto& pair : layers_.pairs) floats = std::max(floats, largest_scratch(pair));
  return floats;
}

/// The map of a tap with the size of the result.
FeatureMap SampledMap::resized(const TapResize& tap, const FeatureMap& patches, MapSize size, int threads,
                               const SampledMapBuffers& memory) const {
  if (!tap.reduce && !tap.enlarge) return patches;
  const std::size_t of_tap = joined_channels() / layers_.taps.size();
  const FeatureMap out = FeatureMap::over(memory.resized, size, of_tap);
  if (tap.reduce) {
    const FeatureMap in = bordered(memory.patches, patches.size(), tap_channels_);
    copy_channels(patches, in, {.count = tap_channels_}, threads);
    tap.reduce->forward(in, out, threads, memory.scratch);
    return out;
  }
  FeatureMap in = patches;
  if (tap.narrow) {
    in = bordered(memory.patches, patches.size(), tap.narrow->convolution.out_channels());
    tap.narrow->forward(patches, in, threads, memory.scratch);
  }
  tap.enlarge->forward(in, out, threads, memory.scratch);
  return out;
}

/// Both halves of the joined map, and the second after one pair of convolutions, after two, ...
FeatureMap SampledMap::stacked(const FeatureMap& joined, MapSize size, int threads,
                               const SampledMapBuffers& memory) const {
  const std::size_t channels = inner();
  const FeatureMap halves = FeatureMap::over(memory.inner, size, 2 * channels);
  layers_.join.forward(joined, halves, threads, memory.scratch);
  const FeatureMap out = FeatureMap::over(memory.stacked, size, layers_.merge.convolution.in_channels());
  copy_channels(halves, out, {.count = 2 * channels}, threads);
  // what is joined is no longer read
  const std::size_t of_map = FeatureMap::num_floats(size, channels);
  const FeatureMap first = bordered({memory.joined.data(), Shape{of_map}}, size, channels);
  const FeatureMap second = bordered({memory.joined.data() + of_map, Shape{of_map}}, size, channels);
  copy_channels(halves, first, {.from_first = channels, .count = channels}, threads);
  std::size_t at = 2 * channels;
  for (const auto& pair : layers_.pairs) {
    pair[0].forward(first, second, threads, memory.scratch);
    pair[1].forward(second, first, threads, memory.scratch);
    copy_channels(first, out, {.to_first = at, .count = channels}, threads);
    at += channels;
  }
  return out;
}

void SampledMap::forward(std::span<const TensorView<float>> taps, GridSize grid, TensorView<float> out,
                         int threads, const SampledMapBuffers& memory) const {
  VIT_CHECK(taps.size() == layers_.taps.size(), (Where{"SampledMap", ErrorKind::mismatch}), taps.size(),
            " taps for a map of ", layers_.taps.size());
  const MapSize whole = size(grid);
  const FeatureMap joined = FeatureMap::over(memory.joined, whole, joined_channels());
  const std::size_t of_tap = joined_channels() / taps.size();
  for (std::size_t k = 0; k < taps.size(); ++k) {
    const FeatureMap patches = FeatureMap::of_tokens(taps[k], {grid.rows, grid.columns});
    copy_channels(resized(layers_.taps[k], patches, whole, threads, memory), joined,
                  {.to_first = k * of_tap, .count = of_tap}, threads);
  }
  layers_.merge.forward(stacked(joined, whole, threads, memory), FeatureMap::of_tokens(out, whole), threads,
                        memory.scratch);
  layers_.norm.forward(out, out, threads);
}

}  // namespace vit::internal
