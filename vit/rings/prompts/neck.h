// The neck between image tower and detector: maps of four, two and one times the grid of patches from the
// tokens of the last block. Letters: G patches a side, C channels of a token, D of the maps.
#pragma once

#include <optional>

#include "vit/layers/convolution.h"
#include "vit/layers/linear.h"
#include "vit/rings/prompts/prompt_memory.h"

namespace vit::internal {

/// What is kept of an image. Rows are pixels in raster order.
struct ImageMaps {
  Tensor<float> finest;    // (16 G G, D)
  Tensor<float> finer;     // (4 G G, D)
  Tensor<float> tokens;    // (G G, D)
  Tensor<float> attended;  // (G G, D): tokens that attended to each other once, which no prompt changes

  std::size_t bytes() const {
    const std::size_t floats = finest.num_elements() + finer.num_elements() + tokens.num_elements() +
                               (attended.empty() ? 0 : attended.num_elements());
    return floats * sizeof(float);
  }
};

/// Where the neck writes: rows of each level, allocated if they have another shape.
struct NeckMaps {
  Tensor<float>&finest, &finer, &tokens;
};

/// A level: channels by a product, where the map grows a transposed one, then a convolution of 3x3.
struct NeckLevel {
  std::optional<TransposedConvolution> first{};  // of the finest, with GELU
  std::optional<TransposedConvolution> grow{};   // the last enlargement with the projection to D
  std::optional<Linear> project{};               // of the map that does not grow
  Convolution smooth;                            // to the channels of the result
};

class Neck {
 public:
  Neck(NeckLevel finest, NeckLevel finer, NeckLevel coarse, const kernels::Arithmetic& arithmetic);

  /// tokens (G G, C) -> maps.
  void forward(TensorView<const float> tokens, std::size_t grid, const NeckMaps& maps,
               PromptMemory& memory) const;

 private:
  void run_level(const NeckLevel& level, TensorView<const float> tokens, std::size_t grid, Tensor<float>& out,
                 PromptMemory& memory) const;

  NeckLevel levels_[3];
  const kernels::Arithmetic* arithmetic_;
};

/// A transposed kernel of 2x2 followed by a projection, as one transposed kernel: nothing is between them.
/// weight (I, M, 2, 2), bias (M), projection (D, M, 1, 1) and its bias (D) -> (I, D, 2, 2) and (D), computed
/// in double.
struct ComposedKernel {
  Tensor<float> weight, bias;
};
ComposedKernel compose(const Tensor<float>& weight, const Tensor<float>& bias,
                       const Tensor<float>& projection, const Tensor<float>& projection_bias);
/// The same of a convolution of 3x3: (M, I, 3, 3) and (O, M, 1, 1) -> (O, I, 3, 3).
ComposedKernel compose_3x3(const Tensor<float>& weight, const Tensor<float>& bias,
                           const Tensor<float>& projection, const Tensor<float>& projection_bias);

}  // namespace vit::internal
