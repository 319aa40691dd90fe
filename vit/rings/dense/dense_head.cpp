#include "vit/rings/dense/dense_head.h"

#include <algorithm>
#include <array>
#include <utility>

namespace vit::internal {

DenseHead::DenseHead(DenseConfig config, std::vector<std::unique_ptr<const BranchHead>> branches)
    : config_(std::make_shared<const DenseConfig>(std::move(config))), branches_(std::move(branches)) {
  for (std::size_t b = 0; b < config_->branches.size(); ++b) {
    const DenseBranch& branch = config_->branches[b];
    taps_.insert(taps_.end(), branch.taps.begin(), branch.taps.end());
    for (std::size_t i = 0; i < branch.outputs.size(); ++i) places_.push_back({b, i});
  }
  for (const auto& branch : branches_) {
    if (const auto* const masks = dynamic_cast<const MaskHead*>(branch.get())) masks_ = masks;
  }
  std::ranges::sort(taps_);
  taps_.erase(std::unique(taps_.begin(), taps_.end()), taps_.end());
}

Shape DenseHead::output_shape(std::size_t output, GridSize grid) const {
  const Place place = places_[output];
  return branches_[place.branch]->output_shape(place.index, grid);
}

bool DenseHead::needs_branch_of(std::size_t output, const Request& request) const noexcept {
  const std::vector<MapOutput>& outputs = config_->branches[places_[output].branch].outputs;
  return std::ranges::any_of(outputs, [&](const MapOutput& one) { return request.has_any(one.meaning); });
}

void DenseHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                        std::span<const TensorView<float>> outputs, int threads, MapMemory& memory) const {
  std::array<TensorView<const float>, kMaxTaps> own{};
  for (std::size_t b = 0, first = 0; b < branches_.size(); ++b) {
    const DenseBranch& branch = config_->branches[b];
    const auto results = outputs.subspan(first, branch.outputs.size());
    first += branch.outputs.size();
    if (std::ranges::all_of(results, [](const auto& result) { return result.empty(); })) continue;
    for (std::size_t k = 0; k < branch.taps.size(); ++k)
      own[k] = taps[static_cast<std::size_t>(std::ranges::find(taps_, branch.taps[k]) - taps_.begin())];
    branches_[b]->forward({own.data(), branch.taps.size()}, grid, results, threads,
                          dynamic_cast<DenseMemory&>(memory));
  }
}

}  // namespace vit::internal
