// MaskHead: queries among the tokens, each with scores of classes and a mask, as EoMT has them. Letters: T
// tokens, of which Q queries come first and N patches last, C channels of a token, U = size of the enlarged
// map.
//
//   patches (h, w, C) -> doubled, smoothed, normalized, again -> (U, C)  \.
//   queries (Q, C) -> three layers -> (Q, C)                              > masks (Q, U)
//   queries (Q, C) -> one layer -> classes (Q, classes + 1)
#pragma once

#include <array>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/rings/dense/branch_head.h"

namespace vit::internal {

/// A map of twice as many rows and columns.
struct MapDoubling {
  TransposedConvolution up;
  DepthwiseConvolution smooth;
  LayerNorm norm;  // of each pixel

  std::size_t scratch_floats() const noexcept { return up.scratch_floats(); }
};

struct MaskLayers {
  LayerNorm norm;  // of all tokens
  Convolution classes;
  std::array<Convolution, 3> mlp;
  std::vector<MapDoubling> doublings{};
};

class MaskHead final : public BranchHead {
 public:
  /// `num_prefix`: tokens between queries and patches.
  MaskHead(MaskConfig config, MaskLayers layers, std::size_t num_prefix, const kernels::KernelTable& kernels);

  std::size_t num_queries() const noexcept { return config_.queries; }
  std::size_t num_classes() const noexcept { return layers_.classes.out_channels(); }
  MapSize mask_size(GridSize grid) const {
    return {grid.rows << config_.doublings, grid.columns << config_.doublings};
  }
  /// (Q, U) of output 0, the masks, and (1, Q, classes + 1) of output 1.
  Shape output_shape(std::size_t output, GridSize grid) const override;

  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;
  /// Tokens (T, C), before the norm -> masks (Q, height, width) and classes (1, Q, classes + 1), which may be
  /// empty. Warm calls of one grid allocate nothing.
  void compute(TensorView<const float> tokens, GridSize grid, TensorView<float> masks,
               TensorView<float> classes, int threads, DenseMemory& memory) const;

 private:
  void lay_out(TensorView<const float> tokens, GridSize grid, int threads, DenseMemory& memory) const;
  /// The enlarged map of the patches, which are `map`.
  FeatureMap enlarge(FeatureMap map, int threads, const MaskMaps& maps) const;
  void multiply(const FeatureMap& queries, const FeatureMap& map, TensorView<float> masks, int threads,
                const MaskMaps& maps) const;

  MaskConfig config_;
  MaskLayers layers_;
  std::size_t num_prefix_;
  const kernels::LinearKernels* linear_;
};

}  // namespace vit::internal
