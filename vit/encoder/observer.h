// Observer: the outputs that a request keeps of a pass through the blocks: tokens, attention, rollout. It is
// passive: the encoder's results do not depend on it. Letters: B images, T tokens, C = embed_dim, H heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/encoder/block.h"
#include "vit/encoder/block_hook.h"
#include "vit/outputs.h"

namespace vit::internal {

/// The images of a pass, and the outputs among which theirs are.
struct ObservedImages {
  std::span<const OutputTensor> outputs;  // OutputWriter::tensors(), of more images
  std::size_t first = 0;                  // in the outputs
  std::size_t count = 0;
  /// (T): token t of an image is stored as the token of that index whose place is t; empty = tokens are not
  /// moved.
  std::span<const std::uint32_t> places{};
};

class Observer final : public BlockHook {
 public:
  /// Writes the supported outputs of `images`. All arguments must outlive it; `blocks` are those of the
  /// encoder.
  Observer(const ObservedImages& images, std::span<const Block> blocks, const Pass& pass);

  /// x (B * T, C) are the tokens that enter the encoder.
  void keep_embedded(TensorView<const float> x) const { keep(x, Output::embedded); }
  /// Adds the taps for attention to be kept.
  void before(std::size_t layer, TensorView<float> x, AttentionInput& attention) override;
  /// Keeps the output of the block, and the rollout from it back to the first.
  void after(std::size_t layer, TensorView<float> x) override;

 private:
  struct Entered {
    Tensor<float> x;  // (B * T, C)
    AttentionInput attention;
  };

  void keep(TensorView<const float> x, const OutputKey& key) const;
  void tap_attention(const OutputTensor& output);
  void roll_out(const OutputTensor& output) const;

  ObservedImages images_;  // without outputs if none of them is computed here
  std::span<const Block> blocks_;
  const Pass& pass_;
  std::vector<AttentionTap> taps_;  // of the current block
  std::vector<Entered> entered_;    // the blocks of the rollout
};

}  // namespace vit::internal
