// SampledMap: what queries sample, a map of D channels joined from the maps of all taps. Letters: C channels
// of a tap, D of the result, I inside, h x w patches, H x W pixels of the result.
//
//   taps (h, w, C) -> enlarged or reduced (H, W, C') -> side by side -> (H, W, 2 I), whose second half goes
//   through pairs of 3x3; both halves and what each pair makes of it side by side -> (H, W, D)
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/rings/dense/dense_memory.h"

namespace vit::internal {

/// The activation of a convolution, its functions rounded once.
float activated(float x, Activation activation);

struct NormedConvolution {
  Convolution convolution;
  std::optional<LayerNorm> norm{};  // over the channels of a pixel
  Activation activation = Activation::none;

  void forward(const FeatureMap& in, const FeatureMap& out, int threads, TensorView<float> scratch) const;
  std::size_t scratch_floats() const { return convolution.scratch_floats(); }
};

/// How the map of a tap gets the size of the result; nothing for the same size.
struct TapResize {
  std::optional<NormedConvolution> narrow{};  // 1x1, before
  std::optional<TransposedConvolution> enlarge{};
  std::optional<NormedConvolution> reduce{};  // 3x3 with stride 2

  std::size_t scratch_floats() const {
    return std::max({largest_scratch(narrow), largest_scratch(enlarge), largest_scratch(reduce)});
  }
};

struct SampledMapLayers {
  std::vector<TapResize> taps{};
  NormedConvolution join;  // 1x1
  std::vector<std::array<NormedConvolution, 2>> pairs{};
  NormedConvolution merge;  // 1x1
  LayerNorm norm;           // of the result
};

class SampledMap {
 public:
  SampledMap(MapScale scale, std::size_t tap_channels, SampledMapLayers layers);

  MapSize size(GridSize grid) const;
  std::size_t channels() const noexcept { return layers_.merge.convolution.out_channels(); }
  /// Room for images of this grid.
  SampledMapFloats floats(GridSize grid) const;
  std::size_t scratch_floats() const;

  /// Patches of the taps (h w, C) -> out (H W, D).
  void forward(std::span<const TensorView<float>> taps, GridSize grid, TensorView<float> out, int threads,
               const SampledMapBuffers& memory) const;

 private:
  std::size_t joined_channels() const noexcept { return layers_.join.convolution.in_channels(); }
  std::size_t inner() const noexcept { return layers_.join.convolution.out_channels() / 2; }
  FeatureMap resized(const TapResize& tap, const FeatureMap& patches, MapSize size, int threads,
                     const SampledMapBuffers& memory) const;
  FeatureMap stacked(const FeatureMap& joined, MapSize size, int threads,
                     const SampledMapBuffers& memory) const;

  MapScale scale_;
  std::size_t tap_channels_;
  SampledMapLayers layers_;
};

}  // namespace vit::internal
