// DenseHead: the branches of a dense head, each from the tokens of its taps to its maps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/rings/dense/branch_head.h"
#include "vit/rings/dense/mask_head.h"

namespace vit::internal {

class DenseHead {
 public:
  /// `branches` as those of `config`.
  DenseHead(DenseConfig config, std::vector<std::unique_ptr<const BranchHead>> branches);

  const DenseConfig& config() const noexcept { return config_; }
  /// The blocks whose tokens are read, each once, in order.
  std::span<const std::size_t> taps() const noexcept { return taps_; }
  std::size_t num_outputs() const noexcept { return places_.size(); }
  /// The branch that outputs masks of queries, or null.
  const MaskHead* mask_head() const noexcept;

  /// (planes, height, width) of an output for images of this grid.
  Shape output_shape(std::size_t output, GridSize grid) const;
  /// Tokens (T, C) of one image at taps() -> outputs, of output_shape() each.
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const;

 private:
  struct Place {
    std::size_t branch = 0;
    std::size_t index = 0;  // of the output in the branch
  };

  DenseConfig config_;
  std::vector<std::unique_ptr<const BranchHead>> branches_;
  std::vector<std::size_t> taps_;
  std::vector<Place> places_;
};

}  // namespace vit::internal
