// DenseHead: the branches of a dense head, each from the tokens of its taps to its maps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/rings/dense/branch_head.h"
#include "vit/rings/dense/mask_head.h"
#include "vit/towers/map_head.h"

namespace vit::internal {

class DenseHead final : public MapHead {
 public:
  /// `branches` as those of `config`.
  DenseHead(DenseConfig config, std::vector<std::unique_ptr<const BranchHead>> branches);

  const std::shared_ptr<const DenseConfig>& config() const noexcept override { return config_; }
  std::span<const std::size_t> taps() const noexcept override { return taps_; }
  std::size_t num_outputs() const noexcept override { return places_.size(); }
  Output meaning(std::size_t output) const noexcept override { return output_of(output).meaning; }
  bool needs_branch_of(std::size_t output, const Request& request) const noexcept override;
  Shape output_shape(std::size_t output, GridSize grid) const override;
  std::unique_ptr<MapMemory> make_memory() const override { return std::make_unique<DenseMemory>(); }
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, MapMemory& memory) const override;

  bool has_masks() const noexcept override { return masks_ != nullptr; }
  Shape mask_shape(GridSize grid) const override { return masks_->output_shape(0, grid); }
  void compute_masks(TensorView<const float> tokens, GridSize grid, TensorView<float> masks, int threads,
                     MapMemory& memory) const override {
    masks_->compute(tokens, grid, masks, {}, threads, dynamic_cast<DenseMemory&>(memory));
  }

 private:
  struct Place {
    std::size_t branch = 0;
    std::size_t index = 0;  // of the output in the branch
  };
  const MapOutput& output_of(std::size_t output) const noexcept {
    return config_->branches[places_[output].branch].outputs[places_[output].index];
  }

  std::shared_ptr<const DenseConfig> config_;
  std::vector<std::unique_ptr<const BranchHead>> branches_;
  const MaskHead* masks_ = nullptr;  // the branch of masks, if there is one
  std::vector<std::size_t> taps_;
  std::vector<Place> places_;
};

}  // namespace vit::internal
