#include "vit/rings/dense/dense_head.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {

DenseHead::DenseHead(DenseConfig config, std::vector<Branch> branches)
    : config_(std::move(config)), branches_(std::move(branches)) {
  for (std::size_t b = 0; b < config_.branches.size(); ++b) {
    const DenseBranch& branch = config_.branches[b];
    taps_.insert(taps_.end(), branch.taps.begin(), branch.taps.end());
    for (std::size_t i = 0; i < branch.outputs.size(); ++i) places_.push_back({b, i});
  }
  std::ranges::sort(taps_);
  taps_.erase(std::unique(taps_.begin(), taps_.end()), taps_.end());
}

Shape DenseHead::output_shape(std::size_t output, GridSize grid) const {
  const Place place = places_[output];
  return std::visit(
      [&](const auto& branch) -> Shape {
        if constexpr (requires { branch.output_shape(place.index, grid); }) {
          return branch.output_shape(place.index, grid);
        } else {
          const MapSize size = branch.output_size(grid);
          const MapFinisher finish(config_.branches[place.branch].outputs[place.index]);
          return {finish.num_planes(), size.height, size.width};
        }
      },
      branches_[place.branch]);
}

const MaskHead* DenseHead::mask_head() const noexcept {
  for (const Branch& branch : branches_) {
    if (const auto* const masks = std::get_if<MaskHead>(&branch)) return masks;
  }
  return nullptr;
}

void DenseHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                        std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const {
  std::array<TensorView<const float>, kMaxTaps> own{};
  for (std::size_t b = 0, first = 0; b < branches_.size(); ++b) {
    const DenseBranch& branch = config_.branches[b];
    for (std::size_t k = 0; k < branch.taps.size(); ++k)
      own[k] = taps[static_cast<std::size_t>(std::ranges::find(taps_, branch.taps[k]) - taps_.begin())];
    const std::span<const TensorView<const float>> tokens(own.data(), branch.taps.size());
    const auto results = outputs.subspan(first, branch.outputs.size());
    if (const auto* dpt = std::get_if<DptHead>(&branches_[b])) {
      dpt->forward(tokens, grid, results, threads, memory);
    } else if (const auto* linear = std::get_if<LinearMapHead>(&branches_[b])) {
      linear->forward(tokens, grid, results.front(), threads, memory);
    } else if (const auto* heatmaps = std::get_if<HeatmapHead>(&branches_[b])) {
      heatmaps->forward(tokens.front(), grid, results.front(), threads, memory);
    } else if (const auto* masks = std::get_if<MaskHead>(&branches_[b])) {
      masks->forward(tokens.front(), grid, results[0], results[1], threads, memory);
    } else {
      std::get<BoxHead>(branches_[b]).forward(tokens.front(), grid, results, threads, memory);
    }
    first += branch.outputs.size();
  }
}

}  // namespace vit::internal
