// Learned queries among the tokens of the last blocks, and the masks by which they attend (EoMT, Kerssies et
// al. 2025). Letters: B images, Q queries, N patches, T = prefix + N tokens, C = embed_dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "vit/encoder/encoder.h"
#include "vit/towers/image_pass.h"
#include "vit/towers/map_head.h"

namespace vit::internal {

/// Queries that enter in front of all other tokens before block `block`.
class LateQueries {
 public:
  /// `queries`: (Q, C).
  LateQueries(std::size_t block, Tensor<float> queries) : block_(block), queries_(std::move(queries)) {}

  /// Runs tokens (B, T, C), in memory for (B, Q + T, C), through `encoder`, in place -> (B, Q + T, C). All
  /// tokens of the input are wanted, and a sequence is an image.
  TensorView<float> forward(TensorView<float> tokens, EncoderInput input, const Encoder& encoder,
                            BlockHooks hooks, const Pass& pass) const;

 private:
  std::size_t block_;
  Tensor<float> queries_;
};

/// Before some blocks computes a mask of each query from the tokens so far; the query attends only to patches
/// in it, from that block on until the next mask.
class QueryMasks final : public BlockHook {
 public:
  /// Masks by `head` before `blocks`, which may be none.
  QueryMasks(std::span<const std::size_t> blocks, const MapHead* head, const ImagePass& images, int threads)
      : blocks_(blocks),
        head_(head),
        num_images_(images.count()),
        grid_(images.position.grid()),
        threads_(threads),
        memory_(images.lane->masks) {}

  /// x (B * (Q + T), C)
  void before(std::size_t layer, TensorView<float> x, AttentionInput& attention) override;

 private:
  void compute(TensorView<const float> x);
  void hide_patches(TensorView<const float> mask, std::uint8_t* hidden) const;

  std::span<const std::size_t> blocks_;
  const MapHead* head_;
  std::size_t num_images_;
  GridSize grid_;
  int threads_;
  MaskMemory& memory_;
  KeyMask mask_;
};

}  // namespace vit::internal
