// Multi-head self-attention with rotary positions, on the kernels of the models: queries and keys are
// rotated, then out = softmax(q k^T / sqrt(d)) v for each head. Letters: B images, T tokens, H heads of width
// d, K heads of keys and values, each for H / K consecutive heads of queries.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/rope.h"

namespace vit {

/// Settings of attention().
struct AttentionOptions {
  std::size_t num_heads = 1;  // H
  double scale = 0.0;         // of the logits; 0 = 1 / sqrt(d)
  /// A token attends only to itself and earlier tokens. Values of later ones get the weight 0, so they must
  /// be finite.
  bool causal = false;
  /// Sequences that attend only within themselves: the first row of each among the B T rows, ascending from
  /// 0, and B T; none is empty. If there are factors, each sequence lies within one image. Empty = the
  /// images.
  std::span<const std::size_t> sequences{};
  int threads = 0;  // 0 = all; the result does not depend on it
};

/// Working memory of attention(), Encoder and Head, which only grows; for one call at a time.
class VIT_API Workspace {
 public:
  struct Parts;

  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  Parts& parts();  // of the library; throws Error if they were moved elsewhere

 private:
  std::unique_ptr<Parts> parts_;
};

/// q (B, T, H d), k and v (B, T, K d), heads adjacent in the columns -> out (B, T, H d). Rows may have any
/// stride: q, k and v may be columns of one product. Each image has `num_prefix` tokens that are not rotated,
/// then the patches of `factors`, as of a position::RopeTable; without factors (default-constructed) nothing
/// is rotated. A call of shapes that `memory` has seen allocates nothing. Throws Error if the shapes do not
/// match.
VIT_API void attention(TensorView<const float> q, TensorView<const float> k, TensorView<const float> v,
                       const position::RopeFactors& factors, std::size_t num_prefix, TensorView<float> out,
                       Workspace& memory, const AttentionOptions& options);
/// Into new memory.
VIT_API Tensor<float> attention(TensorView<const float> q, TensorView<const float> k,
                                TensorView<const float> v, const position::RopeFactors& factors,
                                std::size_t num_prefix, const AttentionOptions& options);

}  // namespace vit
