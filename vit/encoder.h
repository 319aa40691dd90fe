// The encoder of a Vision Transformer on the kernels of the models: blocks of rotary attention and MLP.
// Letters: B images, T tokens, C channels, H heads of width d, A = H d, G channels of all keys, F hidden
// width of the MLP.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/rope.h"

namespace vit {

/// Tensors of a linear layer.
struct LinearTensors {
  TensorView<const float> weight{};  // (out, in)
  std::span<const float> bias{};     // (out), or empty
};

/// Tensors of a norm; RMSNorm without a beta.
struct NormTensors {
  std::span<const float> gamma{};  // (C)
  std::span<const float> beta{};   // (C), or empty
  float eps = 1e-6f;               // added to the variance
};

/// Tensors of a block: x += scale1 * proj(attention(qkv(norm1(x)))), then x += scale2 * mlp(norm2(x)).
struct BlockTensors {
  NormTensors norm1{};              // (C)
  LinearTensors qkv{};              // (A + 2 G, C), rows ordered q, k, v
  LinearTensors proj{};             // (C, A)
  std::span<const float> scale1{};  // (C): layer scale; empty = 1
  NormTensors norm2{};              // (C)
  LinearTensors gate{};  // (F, C); with it the MLP is fc2(act(gate x) * fc1 x); empty = fc2(act(fc1 x))
  LinearTensors fc1{};   // (F, C)
  LinearTensors fc2{};   // (C, F)
  std::span<const float> scale2{};  // (C): layer scale; empty = 1
};

/// Settings of a block.
struct BlockOptions {
  std::size_t num_heads = 1;                 // H
  Activation activation = Activation::gelu;  // of the MLP
  /// Of its products; int8 without the columns that models keep in float32 because their inputs are large.
  Precision precision = Precision::float32;
};

/// Working memory of an encoder, which only grows; for one call at a time.
class VIT_API EncoderMemory {
 public:
  EncoderMemory();
  ~EncoderMemory();
  EncoderMemory(EncoderMemory&&) noexcept;
  EncoderMemory& operator=(EncoderMemory&&) noexcept;

 private:
  friend class Encoder;
  struct Parts;
  std::unique_ptr<Parts> parts_;
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
               EncoderMemory& memory, int threads = 0) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
