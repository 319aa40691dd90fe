// Head: from the output tokens of the encoder to the requested outputs: final norm, pooling, projection,
// classifier. Letters: B images, R tokens of each (all, or the leading ones if sufficient), C = embed_dim, E
// = projection_dim.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vit/config/head.h"
#include "vit/head/pooling.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Destinations of results; empty if not requested.
struct HeadOutputs {
  TensorView<float> tokens{};  // (B, R, C), after the final norm
  /// The place of every token of `tokens` among those that the head reads; empty = they lie in order.
  std::span<const std::uint32_t> places{};
  TensorView<float> pooled{};     // (B, C)
  TensorView<float> projected{};  // (B, E)
  TensorView<float> logits{};     // (B, classes)
};

/// The layers of a head; layers that a model lacks are absent.
struct HeadLayers {
  std::optional<LayerNorm> norm{};  // on all tokens
  std::optional<AttentionPool> pool{};
  std::optional<LayerNorm> pooled_norm{};
  std::optional<Linear> pooler{};
  std::optional<Linear> projection{};
  std::optional<Linear> classifier{};
  std::optional<Linear> classifier_distillation{};
};

class Head {
 public:
  Head(const ModelConfig& config, HeadLayers layers);

  /// Number of leading tokens of an image sufficient for pooled vectors, projections and logits; 0 = all are
  /// needed.
  std::size_t num_leading_tokens() const noexcept;

  /// Normalizes tokens (B, R, C) in place and computes the outputs in `out`. Uses activations.pooled and
  /// .head_row, and those of a block in attention pooling. Throws Error if shapes disagree.
  void forward(TensorView<float> tokens, const HeadOutputs& out, const Pass& pass) const;

  bool has_attention_pool() const noexcept { return layers_.pool.has_value(); }

 private:
  void pool(TensorView<const float> tokens, TensorView<float> pooled, const Pass& pass) const;
  /// The tokens of pooled_tokens_ side by side.
  void pool_prefix(TensorView<const float> tokens, TensorView<float> pooled) const;
  /// Class token and patch mean side by side, (B, 2 C).
  void pool_both(TensorView<const float> tokens, float* out) const;
  void classify(TensorView<const float> tokens, TensorView<const float> pooled, TensorView<float> logits,
                const Pass& pass) const;

  Pooling pooling_;
  std::vector<std::size_t> pooled_tokens_;
  HeadInput input_;
  std::size_t num_prefix_;
  HeadLayers layers_;
};

}  // namespace vit::internal
