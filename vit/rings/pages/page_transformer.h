// PageTransformer: ids of tokens and visual tokens in, vectors of length 1 out; ModernBERT with a projection.
// Letters: T tokens, N of them visual, C = width, E = dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/run_limits.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/encoder/block.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/activations.h"
#include "vit/position/rope.h"
#include "vit/weights/page_weights.h"

namespace vit::internal {

/// Rotations and the bias of local blocks, for up to `length` tokens.
struct PagePositions {
  std::size_t length = 0;
  std::optional<position::RopeTable<float>> global, local;
  std::vector<float> bias;                 // of the distances -(length - 1) .. length - 1
  std::vector<std::int32_t> query_places;  // (length)
  std::vector<std::int32_t> key_places;
};

/// Working memory, grown to the longest sequence seen; used by one call at a time.
struct PageMemory {
  Activations activations;
  PagePositions positions;
};

/// Immutable: many threads may call forward() at once, each with its own memory.
class PageTransformer {
 public:
  /// Packs the weights for `kernels`, except the token table, whose rows are read from the file that this
  /// keeps open. Blocks compute in `precision`, all else in float32.
  PageTransformer(PageConfig config, const PageWeights& weights, const kernels::KernelTable& kernels,
                  Precision precision);

  const PageConfig& config() const noexcept { return config_; }

  /// The sequence of ids (T), in which `visual` (N, C) takes the places of the image token -> out (T, E).
  /// Without `visual` that token is one as any other. The bits do not depend on threads (0 = all). Throws
  /// Error (mismatch) for other numbers of visual tokens, and ids beyond the token table; Cancelled by
  /// `limits`.
  void forward(std::span<const std::int32_t> ids, TensorView<const float> visual, TensorView<float> out,
               int threads, const RunLimits& limits, PageMemory& memory) const;

 private:
  void embed(std::span<const std::int32_t> ids, TensorView<const float> visual, TensorView<float> rows) const;
  AttentionInput attention_of(std::size_t block, std::size_t length, const PagePositions& positions) const;

  PageConfig config_;
  ModelConfig blocks_config_;
  const kernels::KernelTable* kernels_;
  Precision precision_;
  TensorEntry token_table_;  // (V, C), keeps its file open
  std::optional<LayerNorm> embed_norm_, norm_;
  std::vector<Block> blocks_;
  std::optional<Linear> projection_;
};

}  // namespace vit::internal
