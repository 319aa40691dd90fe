// Boxes that show what is meant, or what is not, as vectors of the prompt. Letters: n boxes, G cells a side
// of the coarse map, T = G G, D channels, R bins a side of the map under a box.
#pragma once

#include <span>
#include <vector>

#include "vit/rings/prompts/rows_attention.h"

namespace vit::internal {

/// A box in shares of the image's edges.
struct ExampleBox {
  double cx = 0, cy = 0, width = 0, height = 0;
  bool positive = true;
};

struct GeometryLayers {
  Linear direct;              // (4 -> D)
  Linear pool;                // (D R R -> D)
  Linear position;            // (D + 2 -> D)
  Linear final;               // (D -> D)
  Tensor<float> labels;       // (2, D): negative, positive
  Tensor<float> class_token;  // (D)
  LayerNorm prompt_norm, vision_norm, output_norm;
  std::vector<PreNormLayer> layers;
};

class GeometryEncoder {
 public:
  GeometryEncoder(GeometryLayers layers, std::size_t bins);

  /// -> (n + 1, D), the last of which is the class token; valid until the next call. tokens (T, D) and their
  /// sine code (T, D).
  TensorView<const float> forward(std::span<const ExampleBox> boxes, TensorView<const float> tokens,
                                  TensorView<const float> code, PromptMemory& memory) const;

 private:
  void embed(std::span<const ExampleBox> boxes, TensorView<const float> tokens, TensorView<float> rows,
             PromptMemory& memory) const;

  GeometryLayers layers_;
  std::size_t bins_;
};

/// The mean of a map (G, G, D) in bins of a box, as torchvision's roi_align without alignment: out (D, bins,
/// bins).
void pool_region(TensorView<const float> map, std::size_t grid, const ExampleBox& box, std::size_t bins,
                 float* out);

}  // namespace vit::internal
