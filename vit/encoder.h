// The encoder of a Vision Transformer on the kernels of the models: blocks of rotary attention and MLP.
// Letters: B images, T tokens, C channels, H heads of width d, A = H d, G channels of all keys, F hidden
// width of the MLP.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/attention.h"
#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/layer_norm.h"
#include "vit/linear.h"
#include "vit/position/rope.h"

namespace vit {

/// Tensors of a block: x += scale1 * end1(proj(attention(qkv(norm1(x))))), then x += scale2 * end2(mlp(
/// norm2(x))). Leave empty what the model does not have, but for norm1, qkv, proj,
/// fc1 and fc2; without norm2 both branches read norm1(x).
struct BlockTensors {
  NormTensors norm1{};              // (C)
  LinearTensors qkv{};              // (A + 2 G, C), rows ordered q, k, v
  NormTensors q_norm{};             // (d): of each head, before the rotation
  NormTensors k_norm{};             // (d)
  NormTensors heads_norm{};         // (A): on the concatenated heads, before proj
  LinearTensors proj{};             // (C, A)
  NormTensors end1{};               // (C): on what attention adds
  std::span<const float> scale1{};  // (C): layer scale
  NormTensors norm2{};              // (C)
  LinearTensors gate{};             // (F, C): with it the MLP is fc2(act(gate x) * fc1 x)
  LinearTensors fc1{};              // (F, C)
  NormTensors hidden_norm{};        // (F): before fc2
  LinearTensors fc2{};              // (C, F)
  NormTensors end2{};               // (C): on what the MLP adds
  std::span<const float> scale2{};  // (C): layer scale
};

/// Settings of a block.
struct BlockOptions {
  std::size_t num_heads = 1;                 // H
  double scale = 0.0;                        // of the logits of attention; 0 = 1 / sqrt(d)
  Activation activation = Activation::gelu;  // of the MLP
  /// Of its products; int8 without the columns that models keep in float32 because their inputs are large.
  Precision precision = Precision::float32;
};

/// The blocks of a model, one after the other. Immutable; safe to share between threads, each with its own
/// memory.
class VIT_API Encoder {
 public:
  /// Packs the tensors of each block. Throws Error if there is none, or shapes do not match.
  Encoder(std::span<const BlockTensors> blocks, const BlockOptions& options);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  std::size_t depth() const noexcept;  // blocks

  /// Runs tokens x (B, T, C), without gaps between rows, in place. Each image has `num_prefix` tokens that
  /// are not rotated, then the patches of `factors`: none, one for all blocks, or one for each. The result
  /// for an image depends neither on the others nor on the number of threads (0 = all). A call of shapes that
  /// `memory` has seen allocates nothing. Throws Error if the shapes do not match.
  void forward(TensorView<float> x, std::span<const position::RopeFactors> factors, std::size_t num_prefix,
               Workspace& memory, int threads = 0) const;
  /// The same with one table for all blocks.
  void forward(TensorView<float> x, const position::RopeTable<float>& table, std::size_t num_prefix,
               Workspace& memory, int threads = 0) const {
    const position::RopeFactors factors = table;
    forward(x, std::span(&factors, 1), num_prefix, memory, threads);
  }

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
