// BlockHook: takes part between the blocks of an encoder: outputs that are kept, attention masks, rows that
// are added, progress. Each is a class in a file of its own. Letters: B sequences, T tokens, C = embed_dim.
#pragma once

#include <cstddef>
#include <span>

#include "vit/layers/attention.h"

namespace vit::internal {

class BlockHook {
 public:
  virtual ~BlockHook() = default;
  /// x (B * T, C) enters block `layer`, which attends by `attention`.
  virtual void before(std::size_t /*layer*/, TensorView<float> /*x*/, AttentionInput& /*attention*/) {}
  /// x (B * T, C) is the output of block `layer`; its input if the last block computes only the wanted
  /// tokens.
  virtual void after(std::size_t /*layer*/, TensorView<float> /*x*/) {}
};

/// Called in this order before and after each block.
using BlockHooks = std::span<BlockHook* const>;

}  // namespace vit::internal
