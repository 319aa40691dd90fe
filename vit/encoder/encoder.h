// The stack of blocks, preceded by an optional LayerNorm. Letters: B images or texts, T tokens, C =
// embed_dim, R wanted tokens of each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vit/encoder/block.h"
#include "vit/encoder/observer.h"
#include "vit/position/position.h"

namespace vit::internal {

/// Says before a block which keys some of its queries do not read.
class KeyHider {
 public:
  virtual ~KeyHider() = default;
  /// x (B * T, C) enters block `layer`. The mask of the block before it holds on where it has none.
  virtual std::optional<KeyMask> before_block(std::size_t layer, TensorView<const float> x) = 0;
};

/// Learned tokens that enter in front of all others before a block.
struct LateTokens {
  std::size_t block = 0;
  TensorView<const float> tokens{};  // (Q, C), or none
  KeyHider* hider = nullptr;         // asked before this block and each later one; null = nothing is hidden
};

/// What the blocks attend to.
struct EncoderInput {
  Sequences sequences;  // of B * T rows
  /// Per block if they differ, over the same rows: windows. Empty = `sequences` everywhere.
  std::span<const Sequences> of_blocks{};
  /// The tokens of each sequence that are needed after the last block, which computes only these: the first
  /// R, or the last R.
  Sequences wanted = sequences;
  bool wanted_last = false;
  bool causal = false;                        // a token attends to itself and earlier tokens
  const PositionContext* position = nullptr;  // null = no rotation
  std::size_t num_prefix = 0;                 // tokens of an image before its patches
  double attention_factor = 1.0;              // of the products of queries and keys, times 1 / sqrt(d)
  LateTokens late{};                          // whole images only, of which all tokens are wanted
};

class Encoder {
 public:
  Encoder(std::optional<LayerNorm> norm_pre, std::vector<Block> blocks)
      : norm_pre_(std::move(norm_pre)), blocks_(std::move(blocks)) {}

  std::size_t depth() const noexcept { return blocks_.size(); }

  /// Runs tokens, rows of C numbers in any shape, in place and returns them. If not all are wanted, it
  /// returns activations.leading with those that are, and `tokens` holds what entered the last block. Where
  /// Q tokens enter late, the memory of `tokens` must have room for B * Q rows more; (B, T + Q, C) is
  /// returned.
  TensorView<float> forward(TensorView<float> tokens, const EncoderInput& input, Observer& observer,
                            const Pass& pass) const;

 private:
  std::optional<LayerNorm> norm_pre_;
  std::vector<Block> blocks_;
};

}  // namespace vit::internal
