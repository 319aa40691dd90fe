// BranchHead: the interface of what turns the tokens of an image into maps, for one branch of a dense head.
// Letters: T tokens of an image, C channels of a token.
#pragma once

#include <cstddef>
#include <span>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/rings/dense/dense_memory.h"

namespace vit::internal {

/// Immutable: many threads may call forward() at once, each with its own memory.
class BranchHead {
 public:
  virtual ~BranchHead() = default;
  /// (planes, height, width) of an output of the branch for images of this grid.
  virtual Shape output_shape(std::size_t output, GridSize grid) const = 0;
  /// Tokens (T, C) at each tap of the branch -> its outputs, of output_shape() each. The bits depend on
  /// nothing else. Warm calls of one grid allocate nothing. Throws Error if taps, tokens or outputs do not
  /// match.
  virtual void forward(std::span<const TensorView<const float>> taps, GridSize grid,
                       std::span<const TensorView<float>> outputs, int threads,
                       DenseMemory& memory) const = 0;
};

}  // namespace vit::internal
