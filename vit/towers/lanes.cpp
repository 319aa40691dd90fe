#include "vit/towers/lanes.h"

#include "vit/towers/batch_plan.h"

namespace vit::internal {

std::size_t ForwardMemory::Dense::bytes() const noexcept {
  std::size_t numbers = pixels.empty() ? 0 : pixels.num_elements();
  for (const Tensor<float>& output : unwanted) numbers += output.empty() ? 0 : output.num_elements();
  return (maps ? maps->capacity_bytes() : 0) + numbers * sizeof(float);
}

std::size_t ForwardMemory::bytes() const noexcept {
  std::size_t bytes = dense.bytes();
  for (const Lane& lane : lanes_)
    bytes += lane.activations.capacity_bytes() + (lane.masks.maps ? lane.masks.maps->capacity_bytes() : 0);
  return bytes;
}

Lanes::Lanes(const Sequences& items, int threads, std::size_t rows_per_pass, ForwardMemory& memory)
    : memory_(memory), threads_(threads), num_threads_(static_cast<std::size_t>(resolve_threads(threads))) {
  std::vector<std::size_t>& cuts = memory.cuts_;
  const auto cut_after = [&](std::size_t first, std::size_t rows) {
    for (std::size_t i = first, sum = 0; i < items.size(); ++i) {
      sum += items.length(i);
      if (sum < rows) continue;
      cuts.push_back(i + 1);
      sum = 0;
    }
  };
  cuts.assign(1, 0);
  cut_after(0, kTokensPerTask);
  num_tasks_ = even_tasks(cuts.size() - 1, num_threads_);
  cuts.resize(num_tasks_ + 1);
  if (rows_per_pass != 0) cut_after(cuts.back(), rows_per_pass);
  if (cuts.back() != items.size()) cuts.push_back(items.size());
}

// All of them, so that no later call has to grow one that was idle in this one.
void Lanes::reserve(const ActivationShape& task_shape, const kernels::Arithmetic& arithmetic) {
  if (memory_.lanes_.size() < num_threads_) memory_.lanes_.resize(num_threads_);
  for (std::size_t i = 0; i < num_threads_; ++i)
    memory_.lanes_[i].activations.reserve(task_shape, arithmetic);
}

Pass Lanes::pass_of(std::size_t lane, int threads) const {
  ForwardMemory::Lane& own = memory_.lanes_[lane];
  return {.activations = own.activations,
          .threads = threads,
          .times = memory_.times_ != nullptr ? &own.times : nullptr,
          .limits = memory_.limits_};
}

Pass Lanes::begin_pass(std::size_t num_items) const {
  Pass pass = pass_of(0, threads_);
  pass.watch = memory_.watch_;
  if (pass.watch != nullptr) pass.watch->begin(num_items);
  return pass;
}

// Each of `num_lanes` lanes that ran in parallel gets a share of the time.
void Lanes::end(std::size_t num_items, std::size_t num_lanes) {
  if (memory_.watch_ != nullptr) memory_.watch_->add_images(num_items);
  if (memory_.times_ == nullptr) return;
  for (ForwardMemory::Lane& lane : memory_.lanes_) {
    for (std::size_t i = 0; i < lane.times.seconds.size(); ++i)
      memory_.times_->seconds[i] += lane.times.seconds[i] / static_cast<double>(num_lanes);
    lane.times = {};
  }
}

}  // namespace vit::internal
