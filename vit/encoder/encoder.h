// The stack of blocks. Letters: B images or texts, T tokens, C = embed_dim, R wanted tokens of each.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "vit/encoder/block.h"
#include "vit/encoder/block_hook.h"
#include "vit/position/position.h"

namespace vit::internal {

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
};

/// The blocks [first, last).
struct BlockRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

class Encoder {
 public:
  explicit Encoder(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}

  std::span<const Block> blocks() const noexcept { return blocks_; }
  std::size_t depth() const noexcept { return blocks_.size(); }

  /// Runs tokens, rows of C numbers in any shape, in place through some blocks and returns them. If the last
  /// block of all computes only the wanted ones, it returns activations.leading with those, and `tokens`
  /// holds what entered that block.
  TensorView<float> forward(TensorView<float> tokens, const EncoderInput& input, BlockRange range,
                            BlockHooks hooks, const Pass& pass) const;
  /// Runs tokens through all blocks.
  TensorView<float> forward(TensorView<float> tokens, const EncoderInput& input, BlockHooks hooks,
                            const Pass& pass) const {
    return forward(tokens, input, {0, depth()}, hooks, pass);
  }

 private:
  AttentionInput attention_of(std::size_t layer, const EncoderInput& input) const;

  std::vector<Block> blocks_;
};

}  // namespace vit::internal
