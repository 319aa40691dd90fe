// One object by points, a box or a mask: prompts become tokens, which a transformer of two ways and the
// coarse map ask each other for; masks are products with an enlarged map. Letters: N tokens, G cells a side,
// T = G G, h = w = 4 G, D channels, K + 1 masks, the first of which is for prompts that are not ambiguous.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "vit/config/prompt_config.h"
#include "vit/rings/prompts/mask_decoder.h"
#include "vit/rings/prompts/neck.h"

namespace vit::internal {

/// What is kept of an image. Rows are pixels in raster order.
struct ClickMaps {
  Tensor<float> finest;  // (16 T, D / 8)
  Tensor<float> finer;   // (4 T, D / 4)
  Tensor<float> tokens;  // (T, D)

  std::size_t bytes() const {
    if (tokens.empty()) return 0;
    return (finest.num_elements() + finer.num_elements() + tokens.num_elements()) * sizeof(float);
  }
};

/// A point in pixels of the model's input.
struct ClickPoint {
  double x = 0, y = 0;
  bool positive = true;
};

/// What says which object is meant.
struct ClickInput {
  std::span<const ClickPoint> points{};
  std::optional<std::array<double, 4>> box{};  // x0, y0, x1, y1 in pixels of the model's input
  TensorView<const float> mask{};              // logits (h, w)
  bool adds_no_memory = false;                 // as the publisher's program
};

/// All masks before one is chosen.
struct ClickOutput {
  Tensor<float> masks;      // logits (K + 1, h, w)
  std::vector<float> ious;  // (K + 1): estimated quality, 0 to 1
  float object = 0;         // logit: whether there is an object
};

/// The layers of a mask that is given.
struct MaskPromptLayers {
  Linear conv1, conv2, conv3;  // of 2x2, 2x2 and 1x1, as products of cells
  LayerNorm norm1, norm2;
};

/// Tokens to themselves, tokens to map, MLP, map to tokens, each followed by its norm.
struct TwoWayLayer {
  RowsAttention self, token_to_image, image_to_token;
  RowsMlp mlp;
  LayerNorm norm1, norm2, norm3, norm4;
};

struct ClickLayers {
  Neck neck;                // whose finer levels end with the projections that masks read
  Tensor<float> no_memory;  // (D)
  Tensor<float> fourier;    // (2, D / 2)
  Tensor<float> points;     // (4, D): negative, positive, both corners of a box
  Tensor<float> no_point;   // (D)
  Tensor<float> no_mask;    // (D)
  MaskPromptLayers mask;
  Tensor<float> first_tokens;  // (2 + K + 1, D): object, quality, masks
  std::vector<TwoWayLayer> layers;
  RowsAttention final_attention;
  LayerNorm final_norm;
  TransposedConvolution up1, up2;
  LayerNorm up_norm;
  std::vector<Perceptron> hyper;  // (D -> D / 8) of each mask
  Perceptron iou, object;
};

class ClickDecoder {
 public:
  ClickDecoder(ClickConfig config, std::size_t grid, std::size_t image_size, ClickLayers layers,
               const kernels::Arithmetic& arithmetic, const kernels::LinearKernels& float32);

  const ClickConfig& config() const noexcept { return config_; }
  /// tokens (T, channels of the tower) -> maps.
  void encode(TensorView<const float> tokens, ClickMaps& maps, PromptMemory& memory) const;
  void decode(const ClickMaps& maps, const ClickInput& input, ClickOutput& out, PromptMemory& memory) const;
  /// The mask to take where one is asked for: the first if small changes of the threshold leave it, else the
  /// best of the others; always the first if the configuration does not ask for stable ones.
  std::size_t choose(const ClickOutput& out) const;

 private:
  /// (N, D) of which the first are learned; valid until the next call.
  TensorView<float> tokens_of(const ClickInput& input, PromptMemory& memory) const;
  void add_mask(TensorView<const float> mask, TensorView<float> map, PromptMemory& memory) const;
  void run_layer(const TwoWayLayer& layer, bool is_first, TensorView<float> tokens,
                 TensorView<const float> code, TensorView<float> map, PromptMemory& memory) const;
  FeatureMap enlarge(TensorView<const float> map, const ClickMaps& maps, PromptMemory& memory) const;
  void code_of(double x, double y, float* out) const;

  ClickConfig config_;
  std::size_t grid_, image_size_;
  ClickLayers layers_;
  Tensor<float> code_;  // (T, D): of the centers of cells
  const kernels::Arithmetic* arithmetic_;
  const kernels::LinearKernels* float32_;
};

}  // namespace vit::internal
