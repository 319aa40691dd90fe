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
#include "vit/rings/dense/branch_head.h"
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

class LinearMapHead final : public BranchHead {
 public:
  LinearMapHead(LinearMapConfig config, LinearMapLayers layers, std::size_t num_prefix,
                const kernels::KernelTable& kernels);

  Shape output_shape(std::size_t /*output*/, GridSize grid) const override {
    return {layers_.finish.num_planes(), grid.rows * config_.enlarged, grid.columns * config_.enlarged};
  }
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;

 private:
  void add_tap(const LinearMapTap& tap, TensorView<const float> tokens, bool first, int threads,
               const LinearMaps& maps) const;

  LinearMapConfig config_;
  LinearMapLayers layers_;
  std::size_t num_prefix_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
