// How the threads of a team share tasks. The threads are created in
// parallel.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>

#include "vit/base/core_sharing.h"

namespace vit::internal {

/// Which tasks of a loop each thread of a team starts with: runs of neighboring ones, as long as each other
/// or longer by one.
class TaskParts {
 public:
  static constexpr std::size_t kMost = 64;  // further threads share the parts of others

  TaskParts(std::size_t num_tasks, int num_threads)
      : num_tasks_(num_tasks), count_(std::min(static_cast<std::size_t>(num_threads), kMost)) {}

  std::size_t count() const { return count_; }
  /// The first task of a part; the last part ends with that of count().
  std::size_t first_of(std::size_t part) const { return part * num_tasks_ / count_; }
  /// The part that contains a task.
  std::size_t of_task(std::size_t task) const { return ((task + 1) * count_ - 1) / num_tasks_; }

 private:
  std::size_t num_tasks_;
  std::size_t count_;
};

/// One leader distributes tasks to a team. Each thread starts with its own part: in jobs that process the
/// same rows in the same order it finds what it wrote in its own cache. Then it takes over tasks that others
/// have not started. A job ends when its tasks have ended: threads that took none are not waited for. Next to
/// other programs, a thread on the leader's core moves to another one, and a preempted thread
/// that is waited for continues on the leader's core.
class Team {
 public:
  using TaskFunction = void (*)(void* context, std::size_t task, int thread);

  /// Threads are numbered below `num_threads`; the leader is 0.
  explicit Team(int num_threads);

  int num_threads() const { return num_threads_; }

  /// Called by the leader: runs all tasks with the serving threads, rethrows the first exception of a task.
  void run(std::size_t num_tasks, TaskFunction function, void* context);
  /// The leader's last job: every serve() returns.
  void dismiss();
  /// Sleeps until `count` calls of serve() have returned, so that a preempted thread gets this
  /// core.
  void await_members(int count);

  /// Called by the others: runs tasks until dismiss().
  void serve(int thread);

 private:
  static constexpr std::uint32_t kDismissed = UINT32_MAX;
  static constexpr std::size_t kMostParts = TaskParts::kMost;

  /// Tasks [begin, end), as one number that is updated atomically.
  struct Range {
    std::uint64_t begin, end;
    static Range of(std::uint64_t bits) { return {bits >> 32, bits & UINT32_MAX}; }
    std::uint64_t bits() const { return begin << 32 | end; }
    bool empty() const { return begin == end; }
  };

  struct alignas(64) Part {              // on a separate cache line
    std::atomic<std::uint64_t> left{0};  // bits of the Range that no thread has taken
  };

  /// A thread of the team, as the leader sees it.
  struct alignas(64) Member {
    std::optional<AwaitedThread> thread;  // set once it works
    std::atomic<bool> is_working{false};  // on tasks of a job

    std::optional<std::int64_t> processor_time() const {
      return is_working ? thread->processor_time() : std::nullopt;
    }
  };

  void announce(std::uint32_t job);
  void await_others(std::uint32_t left);
  void take_tasks(int thread);
  template <typename Take>
  std::uint32_t take_tasks(Part& part, int thread, const Take& take);
  void run_task(std::size_t task, int thread);

  const int num_threads_;
  const std::size_t num_parts_;
  std::array<Member, kMostParts> members_;  // the leader's is not used
  std::atomic<int> leader_core_{-1};
  TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
  std::array<Part, kMostParts> parts_;
  // On separate lines: one is contended, the others are polled. Sequentially consistent, so that no store
  // passes the check for sleeping threads.
  alignas(64) std::atomic<std::uint32_t> job_{0};      // its number, or kDismissed
  alignas(64) std::atomic<std::uint32_t> running_{0};  // tasks that have not ended
  alignas(64) std::atomic<std::uint32_t> gone_{0};     // members that have left
};

}  // namespace vit::internal
