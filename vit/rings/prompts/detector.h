// A detector of what prompts name or show: image tokens -> maps, kept for any number of prompts; maps and a
// prompt -> queries with boxes and scores, and their masks. Letters as in vit/config/prompt_config.h: D
// channels, G cells a side, T = G G, Q queries, h = w = 4 G.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/rings/prompts/click_decoder.h"
#include "vit/rings/prompts/geometry_encoder.h"
#include "vit/rings/prompts/mask_decoder.h"
#include "vit/rings/prompts/neck.h"
#include "vit/rings/prompts/query_decoder.h"
#include "vit/weights/prompt_weights.h"

namespace vit::internal {

/// What is asked of an image.
struct PromptInput {
  TensorView<const float> text{};  // (tokens, D); empty = no words
  std::span<const ExampleBox> boxes{};
  bool always_class_token = false;  // as the publisher's program: without boxes, too
};

/// Scores and boxes of all queries, before any threshold.
struct FoundQueries {
  std::vector<float> logits;  // (Q)
  DecodedQueries decoded;
};

struct DetectorParts {
  Neck neck;
  GeometryEncoder geometry;
  std::vector<PreNormLayer> fusion;
  QueryDecoder decoder;
  ScoringLayers scoring;
  MaskDecoder masks;
};

/// Immutable: many threads may call it at once, each with its own memory.
class PromptDetector {
 public:
  /// Packs the weights for `kernels`. Products of the image's rows are computed in `precision`, int8 as
  /// bfloat16; what decides boxes and scores in float32.
  PromptDetector(PromptConfig config, const PromptWeights& weights, const kernels::KernelTable& kernels,
                 Precision precision);

  const PromptConfig& config() const noexcept { return config_; }
  /// tokens (T, channels of the tower) -> maps.
  void encode(TensorView<const float> tokens, ImageMaps& maps, PromptMemory& memory) const;
  /// Queries for a prompt. The memory keeps what masks() needs until the next call.
  void find(const ImageMaps& maps, const PromptInput& input, FoundQueries& found, PromptMemory& memory) const;
  /// Logits of the masks (n, h, w) of states (n, D), and of the semantic map (h, w), for the prompt of the
  /// last find(); either may be empty.
  void masks(const ImageMaps& maps, TensorView<const float> states, TensorView<float> masks,
             TensorView<float> semantic, PromptMemory& memory) const;

 private:
  PromptConfig config_;
  DetectorParts parts_;
  Tensor<float> code_;  // (T, D)
};

/// The layers of a detector from its weights, tensor by tensor.
DetectorParts build_detector(const PromptConfig& config, const PromptWeights& weights,
                             const kernels::KernelTable& kernels, Precision precision);
/// The same of the part for points; of a config that has it.
ClickDecoder build_click_decoder(const PromptConfig& config, const PromptWeights& weights,
                                 const kernels::KernelTable& kernels, Precision precision);

}  // namespace vit::internal
