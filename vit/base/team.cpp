#include "vit/base/team.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/system.h"
#include "vit/base/worker_threads.h"

namespace vit::internal {

Team::Team(int num_threads)
    : num_threads_(num_threads), num_parts_(std::min<std::size_t>(num_threads, kMostParts)) {}

void Team::run(std::size_t num_tasks, TaskFunction function, void* context) {
  VIT_CHECK(num_tasks <= UINT32_MAX, "parallel_for", num_tasks, " tasks; at most ", UINT32_MAX, " expected");
  function_ = function;
  context_ = context;
  running_ = static_cast<std::uint32_t>(num_tasks);
  const TaskParts parts(num_tasks, num_threads_);
  for (std::size_t part = 0; part < num_parts_; ++part)
    parts_[part].left = Range{parts.first_of(part), parts.first_of(part + 1)}.bits();
  leader_core_.store(current_core(), std::memory_order_relaxed);
  announce(job_ + 1 == kDismissed ? 1 : job_ + 1);
  take_tasks(0);
  for (std::uint32_t left = running_; left != 0; left = running_) await_others(left);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Team::dismiss() {
  announce(kDismissed);
}

void Team::await_members(int count) {
  std::uint32_t gone = gone_;
  while (gone != static_cast<std::uint32_t>(count)) gone = await_change(gone_, gone);
}

void Team::serve(int thread) {
  Member unseen;
  const auto place = static_cast<std::size_t>(thread);
  Member& member = place < kMostParts ? members_[place] : unseen;
  member.thread.emplace();
  for (std::uint32_t seen = 0; (seen = await_change(job_, seen)) != kDismissed;) {
    member.is_working = true;
    take_tasks(thread);
    member.is_working = false;
  }
  ++gone_;
  system::wake_one(gone_);
}

void Team::announce(std::uint32_t job) {
  job_ = job;
  system::wake_all(job_);
}

/// The leader waits until fewer than `left` tasks run.
void Team::await_others(std::uint32_t left) {
  constexpr auto kPatience = std::chrono::microseconds(30), kLook = std::chrono::microseconds(20);
  if (spin_while(running_, left, kPatience) != left) return;
  std::array<std::optional<std::int64_t>, kMostParts> before;
  for (std::size_t i = 0; i < num_parts_; ++i) before[i] = members_[i].processor_time();
  if (spin_while(running_, left, kLook) != left) return;
  for (std::size_t i = 0; i < num_parts_; ++i) {
    if (before[i] && members_[i].processor_time() == before[i]) {
      members_[i].thread->move_here();
      break;
    }
  }
  system::sleep_while(running_, left);
}

// A job is replaced only after all its tasks are counted as ended: a thread that took one, however late it
// looked, reads the job that it belongs to.
void Team::take_tasks(int thread) {
  const std::size_t own = static_cast<std::size_t>(thread) % num_parts_;
  std::uint32_t ended = take_tasks(parts_[own], thread, [](Range& left) { return left.begin++; });
  for (std::size_t i = 1; i < num_parts_; ++i) {
    ended += take_tasks(parts_[(own + i) % num_parts_], thread, [](Range& left) { return --left.end; });
  }
  if (ended != 0 && running_.fetch_sub(ended) == ended) system::wake_one(running_);
}

/// Runs the tasks that `take` removes from those left of a part; returns how many.
template <typename Take>
std::uint32_t Team::take_tasks(Part& part, int thread, const Take& take) {
  std::uint32_t count = 0;
  std::uint64_t bits = part.left;
  for (Range left = Range::of(bits); !left.empty(); left = Range::of(bits)) {
    const std::uint64_t task = take(left);
    if (!part.left.compare_exchange_weak(bits, left.bits())) continue;
    run_task(task, thread);
    ++count;
    bits = part.left;
  }
  return count;
}

void Team::run_task(std::size_t task, int thread) {
  if (thread != 0 && current_core() == leader_core_.load(std::memory_order_relaxed)) leave_core();
  try {
    function_(context_, task, thread);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

}  // namespace vit::internal
