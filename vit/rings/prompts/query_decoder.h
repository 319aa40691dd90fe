// The decoder: learned queries and a presence token attend to each other, the prompt and the image, and move
// the box of each query layer by layer. Letters: Q queries, N = 1 + Q tokens, P vectors of the prompt, G
// cells a side, T = G G, D channels, H heads.
#pragma once

#include <vector>

#include "vit/rings/prompts/rows_attention.h"

namespace vit::internal {

/// Linear layers with ReLU between them.
class Perceptron {
 public:
  explicit Perceptron(std::vector<Linear> layers) : layers_(std::move(layers)) {}
  /// x (M, I) -> out (M, O).
  void forward(TensorView<const float> x, TensorView<float> out, PromptMemory& memory) const;

 private:
  std::vector<Linear> layers_;
};

/// x = norm(x + attention) three times, then x = norm(x + mlp).
struct DecoderLayer {
  RowsAttention self, text, image;
  LayerNorm self_norm, text_norm, image_norm, mlp_norm;
  RowsMlp mlp;
};

struct DecoderLayers {
  Tensor<float> queries;         // (Q, D)
  Tensor<float> points;          // (Q, 4), of which the sigmoid is a box
  Tensor<float> presence_token;  // (D)
  std::vector<DecoderLayer> layers;
  LayerNorm output_norm, presence_norm;
  Perceptron boxes;           // (D -> 4)
  Perceptron presence;        // (D -> 1)
  Perceptron position;        // (2 D -> D), of the codes of a box
  Perceptron bias_x, bias_y;  // (2 -> H), of the distances to the edges of a box
};

/// What it finds.
struct DecodedQueries {
  Tensor<float> states;  // (Q, D)
  Tensor<float> boxes;   // (Q, 4): corners in shares of the image, which may lie outside
  float presence = 0;    // logit: whether the image has anything of the prompt
};

class QueryDecoder {
 public:
  QueryDecoder(DecoderLayers layers, const kernels::Arithmetic& arithmetic);

  /// encoded (T, D), its sine code (T, D), prompt (P, D).
  void forward(TensorView<const float> encoded, TensorView<const float> code, TensorView<const float> prompt,
               std::size_t grid, DecodedQueries& out, PromptMemory& memory) const;
  std::size_t num_queries() const { return layers_.queries.dim(0); }

 private:
  TensorView<const float> positions_of(TensorView<const float> boxes, PromptMemory& memory) const;
  GridBias bias_of(TensorView<const float> boxes, std::size_t grid, PromptMemory& memory) const;
  void run_layer(const DecoderLayer& layer, TensorView<float> tokens, TensorView<const float> positions,
                 TensorView<const float> prompt, const AttentionSources& image, const GridBias& bias,
                 PromptMemory& memory) const;

  DecoderLayers layers_;
  const kernels::Arithmetic* arithmetic_;
};

/// How well queries fit the prompt.
struct ScoringLayers {
  Perceptron mlp;  // (D -> D)
  LayerNorm norm;
  Linear of_prompt, of_query;  // (D -> D)
  /// logits (Q) of states (Q, D) for prompt (P, D).
  void forward(TensorView<const float> states, TensorView<const float> prompt, std::span<float> logits,
               PromptMemory& memory) const;
};

}  // namespace vit::internal
