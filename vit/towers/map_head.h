// MapHead: what turns the tokens of some blocks into maps after the pass, as the tower knows it. Dense heads
// implement it, vit/rings/dense; a build without them has none. Letters: B images, T tokens of an image, C
// channels of a token, Q queries.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "vit/base/arena.h"
#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/dense_config.h"
#include "vit/kernels/kernels.h"
#include "vit/weights/dense_weights.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Intermediate results of a MapHead, for one call at a time.
class MapMemory {
 public:
  virtual ~MapMemory() = default;
  /// Of its own block.
  virtual std::size_t capacity_bytes() const noexcept = 0;
  /// Uses the block of `other`, which must outlive this, instead of its own.
  virtual void borrow(Arena& other) noexcept = 0;
};

/// Immutable: many threads may call forward() at once, each with its own memory.
class MapHead {
 public:
  virtual ~MapHead() = default;

  virtual const std::shared_ptr<const DenseConfig>& config() const noexcept = 0;
  /// The blocks whose tokens are read, each once, in order.
  virtual std::span<const std::size_t> taps() const noexcept = 0;
  virtual std::size_t num_outputs() const noexcept = 0;
  virtual Output meaning(std::size_t output) const noexcept = 0;
  /// Whether anything is requested of what is computed together with an output.
  virtual bool needs_branch_of(std::size_t output, const Request& request) const noexcept = 0;
  /// (planes, height, width) of an output for images of this grid.
  virtual Shape output_shape(std::size_t output, GridSize grid) const = 0;
  /// The memory that forward() and compute_masks() take.
  virtual std::unique_ptr<MapMemory> make_memory() const = 0;
  /// Tokens (T, C) of one image at taps() -> outputs, of output_shape() each. Outputs that are empty, for
  /// which needs_branch_of() is false, are passed over. Warm calls of one grid allocate nothing.
  virtual void forward(std::span<const TensorView<const float>> taps, GridSize grid,
                       std::span<const TensorView<float>> outputs, int threads, MapMemory& memory) const = 0;

  /// Whether queries among the tokens have masks, by which they attend between blocks (EoMT).
  virtual bool has_masks() const noexcept = 0;
  /// (Q, height, width) of the masks; of a head that has them.
  virtual Shape mask_shape(GridSize grid) const = 0;
  /// Tokens (T, C) of one image after any block -> masks of mask_shape().
  virtual void compute_masks(TensorView<const float> tokens, GridSize grid, TensorView<float> masks,
                             int threads, MapMemory& memory) const = 0;
};

/// Completes a message about a head that is missing.
inline constexpr const char* kWithoutHeads = "; a build with -DVIT_RING_DENSE=OFF has no heads";

/// Packs the weights of the head on `backbone` for `kernels`. Products of pixels before the last layer of a
/// result have the arithmetic of linear layers in `precision`, or the `fine` one with int8; everything else
/// is float32. Null in a build without dense heads. Throws Error if a shape does not match.
std::unique_ptr<const MapHead> build_map_head(const DenseConfig& config, const DenseWeights& weights,
                                              const ModelConfig& backbone,
                                              const kernels::KernelTable& kernels, Precision precision);

}  // namespace vit::internal
