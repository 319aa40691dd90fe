// Linear interpolation of feature maps, without antialiasing, as torch.nn.functional.interpolate computes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vit/base/arena.h"
#include "vit/base/choices.h"
#include "vit/base/interpolation.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/map.h"

namespace vit::internal {

/// The sources of the pixels of one axis: pixel i is first[i] times (1 - weight[i]) plus second[i] times
/// weight[i].
struct LinearAxis {
  TensorView<std::uint32_t> first;
  TensorView<std::uint32_t> second;
  TensorView<float> weight;

  static LinearAxis take(Arena::Taker& arena, std::size_t out);
  void fill(std::size_t in, Alignment alignment) const;
};

/// The tables for resizing maps between two sizes.
struct MapResize {
  LinearAxis rows, columns;
  TensorView<float> blended;  // (threads, in width * channels)

  static MapResize take(Arena::Taker& arena, MapSize in, MapSize out, std::size_t channels,
                        std::size_t threads);
  void fill(MapSize in, Alignment alignment) const {
    rows.fill(in.height, alignment);
    columns.fill(in.width, alignment);
  }
  /// Row `row` of the result to `out` (width * channels), in thread `thread`.
  void row(const FeatureMap& in, std::size_t row, std::size_t thread, const kernels::MapKernels& kernels,
           float* out) const;
};

/// in (H, W, C) -> out (H', W', C), with a `resize` prepared for these sizes.
void resize_map(const FeatureMap& in, const FeatureMap& out, const MapResize& resize, int threads,
                const kernels::MapKernels& kernels);

}  // namespace vit::internal
