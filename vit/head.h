// From the tokens of an image to its vector and its classes. Letters: B images, T tokens, C channels, V
// numbers of the pooled vector: 2 C for class_and_patch_mean, else C.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "vit/attention.h"
#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config/head.h"
#include "vit/layer_norm.h"
#include "vit/linear.h"

namespace vit {

/// Mean of the tokens from `first` on, as of the patches after the prefix: tokens (B, T, C) -> out (B, C),
/// summed in double. Allocates nothing. Throws Error if the shapes do not match or no token is left.
VIT_API void pool_mean(TensorView<const float> tokens, std::size_t first, TensorView<float> out);

/// Tensors of a head: norm -> pooling -> pooled_norm -> classifier. Leave empty what the model does
/// not have; Pooling::attention needs probe, q, kv, proj, pool_norm, fc1 and fc2.
struct HeadTensors {
  NormTensors norm{};  // (C): of all tokens
  /// Of Pooling::attention: y = proj(attention(q probe, kv tokens)), then y + fc2(act(fc1(pool_norm(y)))).
  std::span<const float> probe{};  // (C): the learned query
  LinearTensors q{};               // (C, C)
  LinearTensors kv{};              // (2 C, C), rows ordered k, v
  LinearTensors proj{};            // (C, C)
  NormTensors pool_norm{};         // (C)
  LinearTensors fc1{};             // (F, C)
  LinearTensors fc2{};             // (C, F)
  NormTensors pooled_norm{};       // (V): of the pooled vector
  LinearTensors classifier{};      // (classes, V)
};

/// Settings of a head.
struct HeadOptions {
  std::size_t embed_dim = 0;                 // C
  Pooling pooling = Pooling::class_token;    // any but prefix_tokens
  std::size_t num_prefix = 1;                // tokens before the patches
  std::size_t num_heads = 1;                 // of Pooling::attention
  Activation activation = Activation::gelu;  // of its MLP
};

/// Pooling and classifier of a model, in float32. Immutable; safe to share between threads, each with its own
/// memory.
class VIT_API Head {
 public:
  /// Packs the tensors. Throws Error if shapes do not match, or the pooling lacks its tensors.
  Head(const HeadTensors& tensors, const HeadOptions& options);
  ~Head();
  Head(Head&&) noexcept;
  Head& operator=(Head&&) noexcept;

  std::size_t pooled_dim() const noexcept;   // C; 2 C of Pooling::class_and_patch_mean
  std::size_t num_classes() const noexcept;  // 0 without a classifier

  /// tokens (B, T, C) without gaps, normalized in place -> pooled (B, pooled_dim) and logits (B,
  /// num_classes), either of which may be empty. A call of shapes that `memory` has seen allocates nothing;
  /// `threads`: 0 = all. Throws Error if the shapes do not match.
  void forward(TensorView<float> tokens, TensorView<float> pooled, TensorView<float> logits,
               Workspace& memory, int threads = 0) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
