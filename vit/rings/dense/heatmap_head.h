// HeatmapHead: heat maps of keypoints from a map of patches, as ViTPose's two decoders make them. Letters: T
// tokens of an image, C channels of a token, K keypoints.
#pragma once

#include <optional>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/rings/dense/branch_head.h"

namespace vit::internal {

/// A transposed convolution of 4x4 with stride 2 and padding 1, which doubles the size: four pixels of the
/// input contribute to each of the result.
struct DoublingConvolution {
  Convolution products;  // 1x1, from C to (4, 4, O): what a pixel adds to those around it
  Tensor<float> bias;    // (O)

  std::size_t scratch_floats() const noexcept { return products.scratch_floats(); }
};

struct HeatmapLayers {
  std::optional<LayerNorm> norm{};               // of all tokens of the tap
  std::vector<DoublingConvolution> doublings{};  // of the classic decoder
  Convolution last;                              // 3x3 of the simple one, 1x1 of the classic one
};

class HeatmapHead final : public BranchHead {
 public:
  HeatmapHead(HeatmapConfig config, HeatmapLayers layers, std::size_t num_prefix,
              const kernels::KernelTable& kernels);

  /// (K, height, width).
  Shape output_shape(std::size_t output, GridSize grid) const override;

  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;

 private:
  std::size_t enlarged() const noexcept;
  void lay_out(TensorView<const float> tokens, MapSize patches, int threads, DenseMemory& memory) const;

  HeatmapConfig config_;
  HeatmapLayers layers_;
  std::size_t num_prefix_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
