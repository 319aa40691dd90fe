// BoxHead: boxes of tokens and what is in them, by perceptrons of three layers (YOLOS: detection tokens;
// OWL-ViT: patches). Letters: T tokens of an image, C channels of a token, N boxes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/rings/dense/branch_head.h"

namespace vit::internal {

struct BoxLayers {
  std::optional<LayerNorm> norm{};                  // of all tokens of the tap
  std::optional<LayerNorm> times_norm{};            // of tokens times the class token
  std::vector<std::vector<Convolution>> outputs{};  // 1x1 layers of each output, in their order
};

class BoxHead final : public BranchHead {
 public:
  BoxHead(const DenseBranch& branch, BoxLayers layers, std::size_t num_prefix, std::size_t num_registers);

  /// (1, N, numbers of a box).
  Shape output_shape(std::size_t output, GridSize grid) const override;

  /// Boxes as center, width and height from 0 to 1.
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;

 private:
  std::size_t num_boxes(GridSize grid) const;
  TensorView<float> input_rows(TensorView<const float> tokens, GridSize grid, int threads,
                               const BoxMaps& maps) const;
  void finish_boxes(GridSize grid, TensorView<float> boxes) const;

  BoxConfig config_;
  std::vector<MapOutput> outputs_;
  BoxLayers layers_;
  std::size_t num_prefix_, num_registers_;
};

}  // namespace vit::internal
