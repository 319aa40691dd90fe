// Observer: the outputs that a request keeps of a pass through the blocks: tokens, attention, rollout. It is
// passive: the encoder's results do not depend on it. Letters: B images, T tokens, C = embed_dim, H heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/encoder/block.h"
#include "vit/outputs.h"

namespace vit::internal {

/// Interface for code of a higher floor that reads the output tokens of a block.
class BlockReader {
 public:
  virtual ~BlockReader() = default;
  /// x (B * T, C) is the output of block `layer`.
  virtual void read(std::size_t layer, TensorView<const float> x) = 0;
};

class Observer {
 public:
  /// Observes nothing, at no cost.
  Observer() = default;
  /// Writes the supported ones of `outputs`, Outputs::tensors(), for the images [first_image, first_image +
  /// num_images). They must outlive the pass.
  Observer(std::span<const OutputTensor> outputs, std::size_t first_image, std::size_t num_images);

  /// `reader` gets the output of every block, and must outlive the pass.
  void set_reader(BlockReader* reader) { reader_ = reader; }
  /// Token t of an image is stored as the token of that index whose place is t; tokens are not moved without
  /// places.
  void set_places(std::span<const std::uint32_t> places) { places_ = places; }

  /// x (B * T, C) is the input of block 0.
  void before_blocks(TensorView<const float> x) const;
  /// x (B * T, C) is the input of a block with `attention`: adds the taps for outputs to be kept.
  void before_block(std::size_t layer, TensorView<const float> x, AttentionInput& attention);
  /// x (B * T, C) is the output of a block.
  void after_block(std::size_t layer, TensorView<const float> x) const;
  /// Computes the rollout of the blocks back to the first.
  void after_blocks(std::span<const Block> blocks, const Pass& pass) const;

 private:
  struct Entered {
    Tensor<float> x;  // (B * T, C)
    AttentionInput attention;
  };

  void keep(TensorView<const float> x, const OutputKey& key) const;
  void tap_attention(const OutputTensor& output);
  void roll_out(const OutputTensor& output, std::span<const Block> blocks, const Pass& pass) const;

  std::span<const OutputTensor> outputs_;  // empty if none of them is computed here
  BlockReader* reader_ = nullptr;
  std::span<const std::uint32_t> places_{};
  std::size_t first_image_ = 0;
  std::size_t num_images_ = 0;
  std::vector<AttentionTap> taps_;  // of the current block
  std::vector<Entered> entered_;    // the blocks of the rollout
};

}  // namespace vit::internal
