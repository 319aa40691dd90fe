// LinearMapHead: a product of each patch, as in DINOv2's linear heads. The maps of the taps are
// concatenated; if they are enlarged first, the product comes first here: it commutes with a linear
// interpolation. Letters: T tokens, C channels of a token, N patches.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/position/config.h"
#include "vit/rings/dense/dense_memory.h"
#include "vit/rings/dense/map_finish.h"

namespace vit::internal {

struct LinearMapTap {
  Convolution patches;          // 1x1, (out, C)
  Tensor<float> class_weights;  // (out, C), of the class token; empty where it is dropped
};

struct LinearMapLayers {
  std::optional<LayerNorm> norm{};  // of all tokens of a tap
  std::vector<LinearMapTap> taps{};
  Tensor<float> bias;  // (out)
  MapFinisher finish;
};

class LinearMapHead {
 public:
  LinearMapHead(LinearMapConfig config, LinearMapLayers layers, std::size_t num_prefix,
                const kernels::KernelTable& kernels);

  /// Of the result for images of this grid.
  MapSize output_size(GridSize grid) const {
    return {grid.rows * config_.enlarged, grid.columns * config_.enlarged};
  }

  /// Tokens (T, C) of each tap -> output (planes, height, width).
  void forward(std::span<const TensorView<const float>> taps, GridSize grid, TensorView<float> output,
               int threads, DenseMemory& memory) const;

 private:
  void add_tap(const LinearMapTap& tap, TensorView<const float> tokens, bool first, int threads,
               const LinearMaps& maps) const;

  LinearMapConfig config_;
  LinearMapLayers layers_;
  std::size_t num_prefix_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
