// Masks: the encoded map, asked once more about the prompt, is enlarged with the finer maps of the image; the
// mask of a query is its product with every pixel. Letters: G cells a side of the coarse map, T = G G, h = w
// = 4 G, D channels, n queries.
#pragma once

#include <optional>
#include <vector>

#include "vit/layers/convolution.h"
#include "vit/rings/prompts/neck.h"
#include "vit/rings/prompts/query_decoder.h"

namespace vit::internal {

/// Normalization of groups of channels over a whole map, then ReLU.
class GroupNormRelu {
 public:
  /// gamma and beta (D), of a D that the groups divide.
  GroupNormRelu(Tensor<float> gamma, Tensor<float> beta) : gamma_(std::move(gamma)), beta_(std::move(beta)) {}
  /// In place; the border is unchanged.
  void forward(const FeatureMap& map, int threads) const;

 private:
  Tensor<float> gamma_, beta_;
};

struct MaskDecoderLayers {
  RowsAttention attention;
  LayerNorm attention_norm;
  std::vector<Convolution> refine;  // of 3x3: after each enlargement
  std::vector<GroupNormRelu> refine_norm;
  Perceptron embed;  // (D -> D), of queries
  /// (D -> D + 1): the projection of pixels as one of queries, and its bias as a number of each query.
  Linear fold;
  Tensor<float> semantic;  // (D + 1): the weight of the one class, and its bias
};

class MaskDecoder {
 public:
  explicit MaskDecoder(MaskDecoderLayers layers, const kernels::LinearKernels& float32);

  /// The pixels (4 G, 4 G, D) of encoded (T, D) for this prompt (P, D); valid until the next call.
  FeatureMap refine(TensorView<const float> encoded, TensorView<const float> prompt, const ImageMaps& maps,
                    std::size_t grid, PromptMemory& memory) const;
  /// Logits masks (n, h, w) of states (n, D); semantic (h, w) of the one class. Either may be empty.
  void multiply(const FeatureMap& pixels, TensorView<const float> states, TensorView<float> masks,
                TensorView<float> semantic, PromptMemory& memory) const;

 private:
  MaskDecoderLayers layers_;
  const kernels::LinearKernels* float32_;
};

/// masks (n, h, w) = weights (n, D + 1) times the pixels (h, w, D): the last column is added.
void multiply_pixels(const FeatureMap& pixels, TensorView<const float> weights, TensorView<float> masks,
                     const kernels::LinearKernels& kernels, PromptMemory& memory);

}  // namespace vit::internal
